; The names of the groups are those that editors with tree-sitter agree on.

(comment) @comment
(string) @string
(escape) @string.escape
(integer) @number
(float) @number.float

["qir" "import" "model" "meta" "extra" "scheme" "blob" "quant" "graph" "func" "const" "data" "scale" "zp" "stat" "onnx"] @keyword
["name" "doc" "from" "by" "in" "inferred" "stated"] @keyword.modifier
(stated_clause) @keyword.modifier
["seq" "optional" "sparse" "map" "tensor" "type"] @type.builtin

(element) @type.builtin
(storage) @type.builtin
"acc" @type.builtin
(unknown) @constant.builtin
(dimension (identifier) @variable.parameter)

(operator) @function
(call function: (identifier) @function.builtin)
(value) @variable
(binding name: (value) @variable)
(parameter (binding name: (value) @variable.parameter))
(omitted) @variable.builtin
(alias) @type.definition
(symbol) @label
(parameter_name) @variable.parameter
(attribute name: (identifier) @property)
(named_argument name: (identifier) @property)
(word) @constant

["->" "=" "~" "::" ":"] @operator
["(" ")" "[" "]" "<" ">" "{" "}"] @punctuation.bracket
"," @punctuation.delimiter
