/* The grammar of .qir for tree-sitter. frontend/qir/parser.y decides what is right; this one takes
 * all of that, and a little more where telling the difference would not help an editor: numbers and
 * names are not looked at, and words that mean something elsewhere may stand as names.
 *
 * A newline ends a statement where one can end, and is blank space elsewhere, as within brackets. */

const NAME_CHARS = /[A-Za-z0-9_.\/$-]+(::[A-Za-z0-9_.\/$-]+)*/;
const QUOTED = /"([^"\\\n]|\\[^\n])*"/;
const STORAGES = ['1', '2', '4', '8', '16', '32'].flatMap(bits => [`int${bits}q`, `uint${bits}q`])
  .concat(['e4m3fn', 'e4m3fnuz', 'e5m2', 'e5m2fnuz'].map(kind => `float8${kind}q`));

const list1 = rule => seq(rule, repeat(seq(',', rule)));
const list = rule => optional(list1(rule));
const sigil = mark => token(seq(mark, choice(NAME_CHARS, QUOTED)));
/* Statements with newlines between; the last needs none before what closes the block. */
const lines = rule => seq(repeat(choice('\n', seq(rule, '\n'))), optional(rule));

module.exports = grammar({
  name: 'qir',

  word: $ => $.identifier,
  extras: $ => [/\s/, $.comment],
  supertypes: $ => [$._item, $._statement],
  inline: $ => [$._val, $._name],

  rules: {
    file: $ => seq('qir', field('version', $.integer), '\n', lines($._item)),

    _item: $ => choice($.import, $.model, $.meta, $.extra, $.scheme, $.blob, $.quant, $.graph, $.func),
    import: $ => seq('import', optional($.string), $.integer, repeat($._clause)),
    model: $ => seq('model', $.attributes),
    meta: $ => seq('meta', $.attributes),
    extra: $ => seq('extra', $._val),
    blob: $ => seq('blob', $.symbol, $.string, optional($.attributes)),
    quant: $ => seq('quant', field('name', $.alias), '=', $.quantized),

    // Passed on as text, so all that shows here are strings, words and braces that match.
    scheme: $ => seq('scheme', $.scheme_block),
    scheme_block: $ => seq('{', repeat(choice($.string, $.scheme_text, $.scheme_block)), '}'),
    scheme_text: _ => /[^{}"\s\/]+|\//,

    // ---- graphs

    graph: $ => seq('graph', optional(choice(field('name', $.symbol), $.omitted)), $._signature, $.body),
    func: $ => seq('func', field('name', $.operator), optional($.attributes), $._signature, $.body),
    _signature: $ => seq($.parameters, '->', $.results, repeat($._clause)),
    parameters: $ => seq('(', list($.parameter), ')'),
    parameter: $ => seq($.binding, optional(seq('=', 'const'))),
    results: $ => seq('(', list($.binding), ')'),
    _result: $ => choice($.binding, $.omitted),
    binding: $ => prec.right(seq(
      field('name', $.value),
      optional(seq(':', field('type', $._type), optional(seq('~', $._element)))),
      repeat($._clause))),
    omitted: _ => '_',

    body: $ => seq('{', lines($._statement), '}'),
    _statement: $ => choice($.constant, $.data, $.node, $.stat, $.from_line, $.meta_line, $.spelling, $.order, $.import),
    constant: $ => seq('const', $.binding, '=', $._val, repeat($._clause)),
    data: $ => seq('data', '{', lines(choice($.constant, $.parameters)), '}'),
    parameters: $ => seq(choice('scale', 'zp'), $.alias, '=', $._val),
    from_line: $ => prec.right(seq('from', $.value, '(', list1($.origin), ')',
      optional(seq('by', $.string)), optional(seq('in', $.string)))),
    meta_line: $ => seq('meta', optional($.value), $.attributes),
    stat: $ => seq('stat', $.value, $.attributes),
    spelling: $ => seq('onnx', $.value, '=', field('operator', $.operator),
      optional($.attributes), repeat($._clause)),
    order: $ => seq('onnx', 'const', '(', list1($._val), ')'),
    node: $ => seq(
      choice(list1($._result), seq('(', ')')), '=', field('operator', $.operator),
      $.operands, optional($.attributes), repeat($._clause)),
    operands: $ => seq('(', list(choice($.value, $.omitted)), ')'),
    operator: $ => seq(optional('::'), $._name, repeat(seq('::', $._name))),

    // ---- types

    _type: $ => choice($.tensor_type, $.container_type, $.map_type, $.unknown, $.denoted_type),
    denoted_type: $ => seq($._type, $.string),
    tensor_type: $ => seq($._element, $.dimensions),
    container_type: $ => seq(choice('seq', 'optional', 'sparse'), '<', $._type, '>'),
    map_type: $ => seq('map', '<', $.element, ',', $._type, '>'),
    unknown: _ => '?',
    _element: $ => choice($.element, $.alias, $.quantized),
    element: $ => $.identifier,
    quantized: $ => choice(
      seq($.storage, '<', list1(choice($._val, $.unknown, $.named_argument)), '>'),
      seq('acc', '<', $._factor, ',', $._factor,
        optional(seq(',', $._val, ',', $._val)), '>')),
    _factor: $ => choice($.alias, $.value),
    storage: _ => choice(...STORAGES),
    dimensions: $ => seq('[', choice('*', list($.dimension)), ']'),
    dimension: $ => seq(choice($.integer, $.identifier, $.storage, $.string,
      seq($.unknown, optional($.integer))),
      optional($.string)),

    // ---- values of attributes

    _val: $ => choice($.integer, $.float, $.string, $.symbol, $.word, $.reference, $.range, $.call,
      $.tensor, $.type, $.graph, $.list),
    word: $ => choice($.identifier, $.storage),
    reference: $ => prec.right(seq($.parameter_name, optional(seq(':', $.identifier)))),
    range: $ => seq($.integer, ':', $.integer),
    call: $ => seq(field('function', $.identifier), '(', list($._argument), ')'),
    _argument: $ => seq(choice($._val, $.named_argument), repeat($._clause)),
    named_argument: $ => seq(field('name', $._name), '=', $._val),
    tensor: $ => seq('tensor', '(', $._type, ',', $._val, repeat($._clause), ')'),
    type: $ => seq('type', '(', $._type, ')'),
    list: $ => prec.right(seq('[', list($._val), ']', optional(seq(':', $.identifier)))),

    attributes: $ => seq('<', list1($.attribute), '>'),
    attribute: $ => seq(field('name', $._name), optional(seq('=', $._val)), repeat($._clause)),

    // ---- clauses

    _clause: $ => choice($.name_clause, $.doc_clause, $.meta_clause, $.extra_clause, $.stated_clause,
      $.from_clause),
    name_clause: $ => seq('name', $.string),
    doc_clause: $ => seq('doc', $.string),
    meta_clause: $ => seq('meta', $.attributes),
    extra_clause: $ => seq('extra', $._val),
    stated_clause: $ => choice('inferred', seq('stated', optional(seq('(', $._type, ')')))),
    from_clause: $ => prec.right(seq('from', '(', list1($.origin), ')',
      optional(seq('by', $.string)), optional(seq('in', $.string)))),
    origin: $ => seq($.operator, optional($.string)),

    // ---- tokens

    _name: $ => choice($.identifier, $.string),
    value: _ => sigil('%'),
    alias: _ => sigil('!'),
    symbol: _ => sigil('@'),
    parameter_name: _ => sigil('$'),
    string: $ => seq('"', repeat(choice($.escape, token.immediate(/[^"\\\n]+/))),
      token.immediate('"')),
    escape: _ => token.immediate(/\\(x[0-9a-fA-F]{2}|[^\n])/),
    identifier: _ => /[A-Za-z_][A-Za-z0-9_.]*/,
    integer: _ => /-?([0-9]+|0[xX][0-9a-fA-F]+)/,
    float: _ => choice('inf', 'nan', '-inf', '-nan', /nan\(0x[0-9a-fA-F]+\)/,
      /-?[0-9]+(\.[0-9]*([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/,
      /-?(0[xX][0-9a-fA-F]+(\.[0-9a-fA-F]*)?[pP]|2\^)[+-]?[0-9]+/),
    comment: _ => token(seq('//', /[^\n]*/)),
  },
});
