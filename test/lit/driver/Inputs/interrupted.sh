# Ends runs of qxc in the folder $1 while their output is staged; by SIGHUP also where nohup runs the tests.
cd "$1" || exit 1
staged() { find . -name '.*.qxc-tmp' | wc -l; }
start() {
    env --default-signal=TERM,HUP qxc m.onnx -emit=onnx -o o.onnx -report=r.json -quiet 2> /dev/null &
    pid=$!
    for _ in $(seq 200); do
        [ "$(staged)" != 0 ] && break
        sleep 0.05
    done
}
for signal in TERM HUP KILL; do
    start
    before=$(staged)
    kill -$signal $pid
    wait $pid
    status=$?
    echo "$signal staged $before left $(staged) status $status"
done 2> /dev/null
qxc m.onnx -emit=onnx -o other.onnx -quiet
echo "next run: left $(staged)"
start
qxc m.onnx -emit=onnx -o other.onnx -quiet
echo "beside one that writes: staged $(staged)"
kill $pid
