" Vim syntax of .qir, quantized neural networks as text. Of two items that match at the same place
" the later one wins.
if exists('b:current_syntax')
  finish
endif

syn match qirWord "\h[0-9A-Za-z_.]*"
syn match qirNumber "[0-9A-Za-z_.]\@1<!-\?\%(0[xX]\x\+\%(\.\x*\)\?\%([pP][+-]\?\d\+\)\?\|2^[+-]\?\d\+\|\d\+\%(\.\d*\)\?\%([eE][+-]\?\d\+\)\?\)[0-9A-Za-z_]\@!"
syn match qirOther "[?*]\|\<dynamic\>\|\<_\>"
syn match qirArrow "->\|::\|[=~:]"
syn region qirString start=+"+ end=+"\|$+ oneline contains=qirEscape,qirBadEscape
syn match qirBadEscape "\\.\?" contained
syn match qirEscape +\\\%([nt"\\]\|x\x\x\)+ contained

" Keys and operators, bare and quoted.
syn match qirAttr +\%(\h[0-9A-Za-z_.]*\|"\%([^"\\]\|\\.\)*"\)\ze\s*=+
syn match qirOperator +\%(\h[0-9A-Za-z_.]*\|"\%([^"\\]\|\\.\)*"\)\%(::\%(\h[0-9A-Za-z_.]*\|"\%([^"\\]\|\\.\)*"\)\)\{0,2}\ze(+
syn match qirOperator +\%(\<func \)\@5<=\%(\h[0-9A-Za-z_.]*\|"\%([^"\\]\|\\.\)*"\)\%(::\%(\h[0-9A-Za-z_.]*\|"\%([^"\\]\|\\.\)*"\)\)\{0,2}+

syn match qirNumber "-\?\<\%(inf\|nan\)\>\%((0[xX]\x\+)\)\?"
syn match qirKind ":\@1<=\%(floats\?\|ints\?\|strings\?\|tensors\?\|graphs\?\|types\?\|sparses\?\)\>"
syn match qirContainer "\<\%(seq\|optional\|sparse\|map\)\ze<"
syn match qirQuantized "\<\%(u\?int\%(1\|2\|4\|8\|16\|32\)\|float8e4m3fn\%(uz\)\?\|float8e5m2\%(fnuz\)\?\)q\>\|\<acc\ze<"
syn match qirElement "\<\%(float\%(8e4m3fnuz\|8e5m2fnuz\|8e4m3fn\|8e5m2\|8e8m0\|4e2m1\|6e2m3\|6e3m2\|16\)\?\|bfloat16\|double\|complex64\|complex128\|u\?int\%(1\|2\|4\|8\|16\|32\|64\)\|bool\|string\|undefined\)\ze\["
syn match qirElement "\%(map<\)\@4<=\%(u\?int\%(8\|16\|32\|64\)\|string\)\>"
syn match qirData "\<\%(splat\|data\|blob\|external\|elided\|hex\|coo\|tensor\|type\)\ze("

syn match qirClause +\<\%(name\|doc\|by\|in\)\ze\s*"+
syn match qirClause "\<meta\ze\s*<"
syn match qirClause "\<from\ze\s*("
syn match qirClause "\<extra\ze\s\+hex"
syn match qirClause "\<\%(inferred\|stated\)\ze\s*\%([={,()]\|name\|doc\|meta\|extra\|from\|$\)"
syn match qirClause "=\@1<= *const\ze\s*[,)]"
syn match qirKeyword "^\s*\zs\%(qir\ze\s\+\d\|import\ze\s\+[\"0-9]\|model\ze\s*<\|meta\ze\s*[<%]\|extra\ze\s\+hex\|blob\ze\s*@\|quant\ze\s*!\|func\ze\s\|const\ze\s*%\|data\ze\s*{\|\%(scale\|zp\)\ze\s*!\|from\ze\s*%\|stat\ze\s*%\|onnx\ze\s*\%(%\|const\)\)"
syn match qirKeyword "\<graph\ze\s*\%(@\|_\s*(\|([^)]*)\s*->\|(\s*$\)"

syn match qirValue  +%\%([0-9A-Za-z_./$-]\+\%(::[0-9A-Za-z_./$-]\+\)*\|"\%([^"\\]\|\\.\)*"\)+
syn match qirAlias  +!\%([0-9A-Za-z_./$-]\+\%(::[0-9A-Za-z_./$-]\+\)*\|"\%([^"\\]\|\\.\)*"\)+
syn match qirSymbol +@\%([0-9A-Za-z_./$-]\+\%(::[0-9A-Za-z_./$-]\+\)*\|"\%([^"\\]\|\\.\)*"\)+
syn match qirRef    +\$\%([0-9A-Za-z_./$-]\+\%(::[0-9A-Za-z_./$-]\+\)*\|"\%([^"\\]\|\\.\)*"\)+

syn match qirSchemeWord "\h[0-9A-Za-z_-]*" contained
syn match qirComment "//.*"
syn region qirScheme matchgroup=qirKeyword start="^scheme\ze\s*{" matchgroup=NONE end="}" contains=qirSchemeWord,qirString,qirNumber,qirQuantized,qirSchemeType,qirComment
syn match qirSchemeType "\<u\?int\%(1\|2\|4\|8\|16\|32\)q\?\>" contained

hi def link qirComment    Comment
hi def link qirString     String
hi def link qirEscape     SpecialChar
hi def link qirBadEscape  Error
hi def link qirNumber     Number
hi def link qirOther      Special
hi def link qirArrow      Operator
hi def link qirAttr       Identifier
hi def link qirOperator   Function
hi def link qirKind       Type
hi def link qirContainer  Type
hi def link qirQuantized  Type
hi def link qirElement    Type
hi def link qirSchemeType Type
hi def link qirData       Special
hi def link qirClause     Statement
hi def link qirKeyword    Statement
hi def link qirSchemeWord Statement
hi def link qirValue      Identifier
hi def link qirAlias      Typedef
hi def link qirSymbol     Label
hi def link qirRef        PreProc

let b:current_syntax = 'qir'
