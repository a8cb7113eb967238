// Command crosscheck checks the types of the commands, and of everything that they import, for operating systems that a build on this one
// does not see. It reads sources only: compiling them for two more systems takes minutes.
//
//	go run ./internal/tools/crosscheck windows/amd64 darwin/arm64
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	for _, target := range os.Args[1:] {
		system, architecture, _ := strings.Cut(target, "/")
		loaded, err := packages.Load(&packages.Config{
			Mode: packages.LoadAllSyntax,
			Env:  append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture),
		}, "./cmd/...", "./internal/...", "./http/...")
		if err != nil {
			fmt.Fprintf(os.Stderr, "crosscheck: %s: %v\n", target, err)
			os.Exit(1)
		}
		if packages.PrintErrors(loaded) > 0 {
			fmt.Fprintf(os.Stderr, "crosscheck: %s: the errors above\n", target)
			os.Exit(1)
		}
	}
}
