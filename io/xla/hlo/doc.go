// Package hlo reads XLA's HLO into the graph of package components, from text
// as XLA prints and its tests write it, and from HloProto; and writes a graph
// as HLO text.
//
// The text reader follows the grammar by place, not by line: names, opcodes
// and types share one lexical class, '%' is optional everywhere, shapes may be
// missing where they follow from the operands, instructions may span lines
// and be nested as operands. What the reader does not know is kept as text
// (attributes) or by name (opcodes). Not kept are: op_type, scheduling_name and
// the end positions of metadata, payloads of NaN, and comments.
//
// Text is bytes, not UTF-8. Names of instructions, computations, opcodes and
// attributes are words of ASCII letters, digits, '_', '-' and '.'; the name of
// the module is printable ASCII; another byte there is a mistake at its place.
// Strings and values hold any bytes and keep them: strings are unescaped as C
// has it and written back in ASCII with octal escapes, as XLA's CEscape does;
// values kept as text are written as they were read.
//
// Asynchronous sugar ("dot-start") becomes what XLA makes of it: an
// async-start that calls a computation with the operation inside.
//
// Both readers end in the same way: matrix products that a GPU compiler made
// custom-calls get their dimension numbers, the graph is checked, and trip
// counts of loops that do not state one are derived.
package hlo
