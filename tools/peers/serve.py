"""serve.py TOOL: imports with_TOOL.py once, and runs it in a process of its own for each line of its input.

A line is JSON: {"words", "folder", "seconds"}. The answer is {"status", "start", "cpu", "mib"}: "start" has the CPU seconds
of the imports, which each run would take alone. What the tool says goes to FOLDER/said.
"""

import importlib
import json
import os
import resource
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def child(tool, job):
    """Never returns."""
    said = os.open(os.path.join(job["folder"], "said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(job["folder"])
    resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 1))
    status = 1
    try:
        tool.main(*job["words"])
        status = 0
    except BaseException:  # SystemExit as well: it has to be told
        sys.stdout.flush()  # the reason is the last line
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # packages greet on it
    tool = importlib.import_module(f"with_{sys.argv[1]}")
    start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(tool, job)
        _, status, usage = os.wait4(pid, 0)
        print(json.dumps({"status": os.waitstatus_to_exitcode(status), "start": start, "cpu": usage.ru_utime + usage.ru_stime,
                          "mib": usage.ru_maxrss / 1024}), file=answers, flush=True)


if __name__ == "__main__":
    main()
