autocmd BufNewFile,BufRead *.qir setfiletype qir
