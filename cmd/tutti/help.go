package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
)

// addHelpAndCompletion adds the commands help and completion to root, whose streams must be set. For unknown arguments both
// return an error; cobra's own print help and succeed.
func addHelpAndCompletion(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			rejectUnknownCommand(cmd)
		case "completion":
			cmd.Args = command.NoArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// rejectUnknownCommand makes help return an error for a command that does not exist.
func rejectUnknownCommand(help *cobra.Command) {
	show := help.Run
	help.RunE = func(cmd *cobra.Command, args []string) error {
		about, rest, err := cmd.Root().Find(args)
		if about == nil || err != nil || len(rest) > 0 {
			return command.Usage(cmd.Root(), fmt.Sprintf("unknown command %q", cmd.Root().Name()+" "+strings.Join(args, " ")))
		}
		show(cmd, args)
		return nil
	}
}
