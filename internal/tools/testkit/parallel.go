package testkit

import (
	"flag"
	"os"
	"slices"
	"strings"
)

// Parallel has 8 tests of a package run beside each other, unless the command says how many: those that mostly wait for a timer, a disk or
// another process. TestMain calls it.
func Parallel() {
	flag.Parse()
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.parallel=") }) {
		return
	}
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
}
