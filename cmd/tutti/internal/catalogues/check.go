package catalogues

import (
	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/check"
	"tutti/internal/core"
)

const oneCatalogueFolder = "pass the folder that holds the catalogues' files or sub-folders"

// completeFolder completes one folder.
func completeFolder(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func cataloguesCheckCommand() *cobra.Command {
	var output, server string
	cmd := &cobra.Command{
		Use:   "check <dir>",
		Short: "Check a folder of catalogues",
		Long: "Read a folder like catalogues.dir and print one line for each catalogue and for each problem, with its file, its\n" +
			"position and a hint. No index is read: tutti check --config compares catalogues with their indices. With --server,\n" +
			"a running server reports the fields that hold several values (multiValued). The exit code is 0 when every catalogue\n" +
			"is valid, even with warnings, else 1.",
		Example: "  tutti catalogues check ./configs\n" +
			"  tutti catalogues check ./configs --output json | jq '.findings[] | select(.status == \"fail\")'",
		Args:              command.Arguments(1, oneCatalogueFolder),
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			var fieldsOf func(id string) ([]core.CatalogueField, error)
			if server != "" {
				var err error
				if fieldsOf, err = serverFields(cmd, server); err != nil {
					return err
				}
			}
			return command.ReportFindings(cmd, check.Catalogues(args[0], fieldsOf), output)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "the `URL` of a server that has the catalogues, base path included")
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}

// serverFields returns a function that reads the fields of a catalogue from a server.
func serverFields(cmd *cobra.Command, server string) (func(id string) ([]core.CatalogueField, error), error) {
	c, err := (&command.Remote{Server: server, Output: command.OutputText}).Client(cmd)
	if err != nil {
		return nil, err
	}
	return func(id string) ([]core.CatalogueField, error) {
		detail, err := c.Catalogue(cmd.Context(), id)
		return detail.Fields, err
	}, nil
}
