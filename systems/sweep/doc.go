// Package sweep predicts the product of inputs, machines, models, options and
// changes, case by case. A case is named by its content, so that a result is
// good for as long as input, machine, options and engine are the same; results
// go into a record that a kill at any moment leaves whole, and a table of all
// cases in their order is made of it.
package sweep
