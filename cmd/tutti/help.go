package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// completeCommands adds the commands help and completion to root, whose streams are set: both refuse what they do not know,
// where cobra's own show their help and succeed.
func completeCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			refuseUnknown(cmd)
		case "completion":
			cmd.Args = noArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// refuseUnknown makes help return an error for a command that there is not.
func refuseUnknown(help *cobra.Command) {
	show := help.Run
	help.RunE = func(cmd *cobra.Command, args []string) error {
		about, rest, err := cmd.Root().Find(args)
		if about == nil || err != nil || len(rest) > 0 {
			return usage(cmd.Root(), fmt.Sprintf("there is no command %q", cmd.Root().Name()+" "+strings.Join(args, " ")))
		}
		show(cmd, args)
		return nil
	}
}
