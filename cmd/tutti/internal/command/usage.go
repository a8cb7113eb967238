package command

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tutti/internal/core"
)

// Usage returns the error for an invalid command line.
func Usage(cmd *cobra.Command, message string) error {
	return &core.Error{Code: core.CodeInvalid, Message: message, Hint: "see " + cmd.CommandPath() + " --help"}
}

// Arguments accepts one to most arguments. want is the error message for other numbers.
func Arguments(most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return Usage(cmd, want)
		case len(args) > most:
			return Usage(cmd, fmt.Sprintf("%q is one argument too many: %s", args[most], want))
		default:
			return nil
		}
	}
}

// NoArguments accepts no arguments. An argument to a command with sub-commands is reported as an unknown command.
func NoArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return Usage(cmd, fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()))
	default:
		return Usage(cmd, fmt.Sprintf("%s takes no arguments, %q is one", cmd.CommandPath(), args[0]))
	}
}

// FlagError returns the usage error for a flag that could not be parsed.
func FlagError(cmd *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return Usage(cmd, err.Error())
	}
	flag, want := invalid.GetFlag(), ""
	switch value := flag.Value.(type) {
	case *Number:
		want = value.allowed()
	default:
		switch value.Type() {
		case "bool":
			want = "true or false"
		case "duration":
			want = "a duration such as 30s"
		default:
			return Usage(cmd, err.Error())
		}
	}
	return Usage(cmd, fmt.Sprintf("--%s takes %s, not %q", flag.Name, want, invalid.GetValue()))
}

// Number is a flag value: a whole number from 1 to most. Its target stays 0 if the flag is not given.
type Number struct {
	Target *int
	Most   int
}

var _ pflag.Value = (*Number)(nil)

// String returns the number, "" for 0.
func (n *Number) String() string {
	if n.Target == nil || *n.Target == 0 {
		return ""
	}
	return strconv.Itoa(*n.Target)
}

// Set parses the number.
func (n *Number) Set(text string) error {
	value, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || value < 1 || value > n.Most {
		return errors.New("expects " + n.allowed())
	}
	*n.Target = value
	return nil
}

// Type returns the name of the flag's type.
func (n *Number) Type() string { return "number" }

// allowed describes the values that the flag accepts.
func (n *Number) allowed() string {
	if n.Most == math.MaxInt {
		return "a whole number from 1"
	}
	return fmt.Sprintf("a whole number from 1 to %d", n.Most)
}

// ConfigFlag adds the flag of the configuration file.
func ConfigFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML); also TUTTI_CONFIG")
}
