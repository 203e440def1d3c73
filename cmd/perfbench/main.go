//go:build unix

// Command perfbench measures perfsim and writes BENCHMARKS.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"perfsim/bench/suite"
	"perfsim/cmd/internal/cli"
)

// asPerfsim in the environment makes this program perfsim: whole processes
// are measured by starting it again.
const asPerfsim = "PERFBENCH_AS_PERFSIM"

func main() {
	if os.Getenv(asPerfsim) != "" {
		status := cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if err := suite.WritePeak(); err != nil {
			fmt.Fprintln(os.Stderr, "perfbench:", err)
		}
		os.Exit(status)
	}
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "perfbench:", err)
		os.Exit(1)
	}
}

func run(args []string, log io.Writer) error {
	fl := flag.NewFlagSet("perfbench", flag.ContinueOnError)
	sizes := fl.String("sizes", "10000,100000,1000000,10000000,100000000", "numbers of instructions")
	rounds := fl.Int("rounds", 5, "how often each figure is taken")
	budget := fl.Duration("time", 5*time.Minute, "about how long each of the six parts may take; larger sizes are left out when it is over")
	out := fl.String("o", "BENCHMARKS.md", "the report to write")
	raw := fl.String("raw", "bench/results.txt", "the figures to write, for benchstat")
	dir := fl.String("dir", "", "folder for temporary files, up to 35 bytes an instruction of the largest size")
	if err := fl.Parse(args); err != nil {
		return err
	}
	opt := suite.Options{Rounds: *rounds, Budget: *budget, Dir: *dir, Env: []string{asPerfsim + "=1"}, Log: log}
	for _, f := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 100 || n >= 1<<30 {
			return fmt.Errorf("-sizes: %q is not a number from 100 on", f)
		}
		opt.Sizes = append(opt.Sizes, n)
	}
	slices.Sort(opt.Sizes)
	if *rounds < 1 {
		return fmt.Errorf("-rounds %d is not at least 1", *rounds)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	opt.Command = []string{self}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := suite.Run(ctx, opt)
	if err != nil {
		return err
	}
	if err := write(*raw, r.Raw); err != nil {
		return err
	}
	return write(*out, r.Markdown)
}

// write writes a file by way of a temporary name beside it.
func write(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	defer os.Remove(path + ".tmp") // gone already where all went well
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
