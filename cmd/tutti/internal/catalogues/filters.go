package catalogues

import (
	"os"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/check"
	"tutti/internal/core"
)

// FiltersCommand returns tutti filters.
func FiltersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "filters",
		Short:   "Check saved filters before a move from Arranger",
		Long:    "A filter (SQON) that a portal has saved means the same in tutti as in Arranger, with few exceptions.",
		Example: "  tutti filters check saved.json",
	}
	cmd.AddCommand(filtersCheckCommand())
	return cmd
}

func filtersCheckCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check <file>",
		Short: "Name the saved filters whose meaning changes",
		Long: "Read filters (SQON) that were saved with Arranger, and print one line for each clause that tutti refuses (fail), that\n" +
			"finds other documents (fail), or that may do so, by the type of its field or by the documents (warn): with the number\n" +
			"of the filter, its line, the JSON pointer of the clause and the reason. The file is JSON: one filter, an array of\n" +
			"filters, or one filter per line. No server and no index is asked. The exit code is 0 when nothing failed, else 1.",
		Example: "  tutti filters check saved.json\n" +
			"  tutti filters check saved.ndjson --output json | jq '.findings[] | select(.status == \"fail\")'",
		Args: command.Arguments(1, "pass the file that holds the filters"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return core.WrapError(core.CodeInvalid, "reading the filters: "+err.Error(), err)
			}
			return command.ReportFindings(cmd, check.Filters(raw), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}
