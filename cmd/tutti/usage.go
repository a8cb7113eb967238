package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tutti/internal/core"
)

// usage returns the error for an invalid command line.
func usage(cmd *cobra.Command, message string) error {
	return &core.Error{Code: core.CodeInvalid, Message: message, Hint: "see " + cmd.CommandPath() + " --help"}
}

// arguments accepts one to most arguments. want is the error message for other numbers.
func arguments(most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage(cmd, want)
		case len(args) > most:
			return usage(cmd, fmt.Sprintf("%q is one argument too many: %s", args[most], want))
		default:
			return nil
		}
	}
}

// noArguments accepts no arguments. An argument to a command with sub-commands is reported as an unknown command.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return usage(cmd, fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()))
	default:
		return usage(cmd, fmt.Sprintf("%s takes no arguments, %q is one", cmd.CommandPath(), args[0]))
	}
}

// flagError returns the usage error for a flag that could not be parsed.
func flagError(cmd *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usage(cmd, err.Error())
	}
	flag, want := invalid.GetFlag(), ""
	switch value := flag.Value.(type) {
	case *number:
		want = value.allowed()
	default:
		switch value.Type() {
		case "bool":
			want = "true or false"
		case "duration":
			want = "a duration such as 30s"
		default:
			return usage(cmd, err.Error())
		}
	}
	return usage(cmd, fmt.Sprintf("--%s takes %s, not %q", flag.Name, want, invalid.GetValue()))
}

// number is a flag value: a whole number from 1 to most. Its target stays 0 if the flag is not given.
type number struct {
	target *int
	most   int
}

var _ pflag.Value = (*number)(nil)

// String returns the number, "" for 0.
func (n *number) String() string {
	if n.target == nil || *n.target == 0 {
		return ""
	}
	return strconv.Itoa(*n.target)
}

// Set parses the number.
func (n *number) Set(text string) error {
	value, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || value < 1 || value > n.most {
		return errors.New("expects " + n.allowed())
	}
	*n.target = value
	return nil
}

// Type returns the name of the flag's type.
func (n *number) Type() string { return "number" }

// allowed describes the values that the flag accepts.
func (n *number) allowed() string {
	if n.most == math.MaxInt {
		return "a whole number from 1"
	}
	return fmt.Sprintf("a whole number from 1 to %d", n.most)
}
