// Command measure prints how the code reads, and holds it to the ceilings of ceilings.txt, which may only fall:
//
//   - path: how often a page of a list, and a record from its trigger to its acknowledgement, enter a file that they entered before;
//   - reach: how many fields and methods code of its package can name on a type, with those of the types it embeds. A type without a
//     row may have 35;
//   - alike: how many interfaces have the methods of another one. A port that several packages need alike stands once.
//
// It runs in the root of the module: go run ./internal/tools/measure. With -v it prints the files of each path in order, with -lower
// it writes the values that have fallen.
//
// A path follows a parameter through the calls that are passed it, along the main line of the code, on which nothing fails and nothing
// optional is there. A call enters the file of its function, and the next call after it enters the file of the caller again.
//
//   - An error is nil, and so is what a condition compares with nil. A body of an if that may be entered or not is not. Of if and else,
//     and of the cases of a switch, the first that may be taken is.
//   - A loop is walked once, a deferred call at the end of its function. A function that only returns what is there is not entered.
//   - A method of an interface is that of the one type of the module that has it; with several, the path names the type.
//   - What is made of the value carries it too: a call's results, except errors and contexts, and the parameters of a function that is
//     called back. A function value is walked where it is called, or where it is passed to code that is not followed.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// file has the ceilings, in the root of the module.
const file = "internal/tools/measure/ceilings.txt"

func main() {
	verbose := flag.Bool("v", false, "print the files of each path in order")
	lower := flag.Bool("lower", false, "write the values that have fallen")
	flag.Parse()
	if err := run(*verbose, *lower); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(verbose, lower bool) error {
	stored, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ceilings, err := parse(string(stored))
	if err != nil {
		return err
	}
	m, err := load(".")
	if err != nil {
		return err
	}
	values := table{}
	for _, p := range paths() {
		entries, err := m.entries(p)
		if err != nil {
			return fmt.Errorf("the path of a %s: %w", p.name, err)
		}
		files := len(slices.Compact(slices.Sorted(slices.Values(entries))))
		again := len(entries) - files
		values["path "+p.name] = again
		fmt.Printf("a %s enters %d files %d times, %d times again (ceiling %d)\n", p.name, files, len(entries), again, ceilings["path "+p.name])
		if verbose {
			fmt.Println("  " + strings.Join(entries, "\n  "))
		}
	}
	most, largest := 0, ""
	for name, n := range m.reaches(freeReach) {
		values["reach "+name] = n
		if n > most || n == most && name < largest {
			most, largest = n, name
		}
	}
	fmt.Printf("%d types have more than %d names in reach; most has %s, %d\n", len(values)-len(paths()), freeReach, largest, most)
	surplus := 0
	for _, group := range m.alike() {
		surplus += len(group) - 1
		if verbose {
			fmt.Println("  " + strings.Join(group, " "))
		}
	}
	values["alike"] = surplus
	fmt.Printf("%d interfaces are declared like another one (ceiling %d)\n", surplus, ceilings["alike"])
	if lower {
		return os.WriteFile(file, []byte(ceilings.lowered(values).String()), 0o644)
	}
	return ceilings.hold(values)
}
