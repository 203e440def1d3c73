// Package coregrid predicts how an operator graph runs on a machine of many like
// cores (components/machine/grid): on a dataflow grid, operators are placed
// on rectangles of cores, epoch by epoch, by a balancer, and inputs stream
// through them; on a kernel machine, operators run one after another on all
// cores. Either way the result is a module whose lanes are the operators,
// placed by the same engine as everything else.
package coregrid
