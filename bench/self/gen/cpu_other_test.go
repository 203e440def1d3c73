//go:build !unix

package gen

func cpuSeconds() float64 { return 0 }
