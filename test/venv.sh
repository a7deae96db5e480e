# Sourced. The virtual environment of the tests, made anew when test/requirements.txt changes.
venv() { # its folder
    local dir=$1 want
    want=$(cat test/requirements.txt; "${PYTHON:-python3}" --version)
    if [ ! -f "$dir/made-from" ] || [ "$(cat "$dir/made-from")" != "$want" ]; then
        rm -rf "$dir"
        "${PYTHON:-python3}" -m venv "$dir" &&
            "$dir/bin/pip" install --quiet --disable-pip-version-check \
                --requirement test/requirements.txt </dev/null &&
            printf '%s\n' "$want" >"$dir/made-from"
    fi
}
