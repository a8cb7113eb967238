package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tutti/internal/app/check"
	"tutti/internal/core"
)

func cataloguesCheckCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check <dir>",
		Short: "Look whether a folder of catalogues is as it should be",
		Long: "Read a folder as catalogues.dir would be read, and say in one line each what the catalogues are, what is wrong with\n" +
			"them, in which file and where in it, and how to mend it. Neither a server nor an index is asked: whether an index has\n" +
			"what a catalogue says of it, tutti check --config tells. The exit code is 0 when every catalogue can be built, also with\n" +
			"warnings, else 1.",
		Example: "  tutti catalogues check ./configs\n" +
			"  tutti catalogues check ./configs --output json | jq '.findings[] | select(.status == \"fail\")'",
		Args: arguments(1, "give the folder that holds the catalogues' files, or their folders"),
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return reportFindings(cmd, check.Catalogues(args[0]), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", outputText, "`text` or json")
	complete(cmd, "output", outputs()...)
	return cmd
}

// reportFindings writes what was found to stdout, and gives an error when anything failed.
func reportFindings(cmd *cobra.Command, found check.Report, output string) error {
	if err := writeFindings(cmd.OutOrStdout(), found, output); err != nil {
		return err
	}
	if !found.OK {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("%d of %d findings failed", found.Failed(), len(found.Findings)))
	}
	return nil
}
