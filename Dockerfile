# qxc in an image of Debian 12: docker build -t qxc . && docker run --rm -v "$PWD:/work" qxc info model.onnx
FROM debian:12 AS build
COPY tools/install_deps.sh /src/tools/install_deps.sh
RUN /src/tools/install_deps.sh build
COPY . /src
RUN make -C /src -j"$(nproc)" BUILD=/tmp/build all && \
    make -C /src BUILD=/tmp/build PREFIX=/usr DESTDIR=/tmp/image install-files

FROM debian:12-slim
RUN apt-get update && \
    apt-get install -y --no-install-recommends libjansson4 libprotobuf-c1 libzip4 && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /tmp/image/usr /usr
WORKDIR /work
USER nobody
ENTRYPOINT ["/usr/bin/qxc"]
