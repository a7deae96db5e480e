setlocal commentstring=//\ %s comments=:// expandtab shiftwidth=2
