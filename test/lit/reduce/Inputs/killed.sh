# Kills a run of qxc reduce in the folder $1 whose CMD does not end.
cd "$1" || exit 1
export TMPDIR=$1/tmp
folders() { find tmp -mindepth 1 -maxdepth 1 | wc -l; }
start() {
    rm -f pid
    qxc reduce m.onnx -timeout=0 -test='echo $$ > pid; sleep 1000; echo' -o r.onnx -quiet &
    run=$!
    for _ in $(seq 200); do
        [ -s pid ] && break
        sleep 0.05
    done
    children=$(pgrep -P "$(cat pid)")
}
gone() {
    for _ in $(seq 100); do
        kill -0 "$(cat pid)" 2> /dev/null || kill -0 $children 2> /dev/null || return 0
        sleep 0.05
    done
    return 1
}
start
echo "started, folders: $(folders)"
kill -KILL $run
wait $run
gone && echo "killed, CMD is gone, folders: $(folders)"
qxc reduce m.onnx -test='sh -c "exit 3"' -o next.onnx -quiet
echo "next run done: $?, folders: $(folders)"
start
qxc reduce m.onnx -test='sh -c "exit 3"' -o next.onnx -quiet
echo "beside one at work done: $?, folders: $(folders)"
kill $run
