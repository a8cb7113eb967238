// Command nodes makes the files of secured NATS servers in a folder, for deploy/local/nats/start: nodes FOLDER WAY PORT.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"tutti/internal/tools/queuetest"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ways := []string{queuetest.WayUsers, queuetest.WayCertificates, queuetest.WayOperator}
	if len(args) != 3 || !slices.Contains(ways, args[1]) {
		fmt.Fprintln(os.Stderr, "usage: nodes FOLDER WAY PORT; ways:", ways)
		return 2
	}
	port, err := strconv.Atoi(args[2])
	if err == nil {
		err = queuetest.Secured{Dir: args[0], Way: args[1], Port: port}.Write()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
