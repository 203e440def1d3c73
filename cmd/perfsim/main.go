// Command perfsim predicts how an AI-accelerator module runs, and says why.
package main

import (
	"os"

	"perfsim/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
