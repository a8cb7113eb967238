package catalogues

import (
	"os"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/check/savedfilter"
	"tutti/internal/app/compare"
	"tutti/internal/config"
	"tutti/internal/core"
)

// FiltersCommand returns tutti filters.
func FiltersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "filters",
		Short:   "Check saved filters before a move from Arranger",
		Long:    "A filter (SQON) that a portal has saved means the same in tutti as in Arranger, with few exceptions.",
		Example: "  tutti filters check saved.json --catalogue donors",
	}
	cmd.AddCommand(filtersCheckCommand())
	return cmd
}

func filtersCheckCommand() *cobra.Command {
	var r command.Remote
	var file, catalogue string
	cmd := &cobra.Command{
		Use:   "check <file>",
		Short: "Name the saved filters whose meaning changes",
		Long: "Read filters (SQON) that were saved with Arranger, and print one line for each clause that tutti refuses (fail), that\n" +
			"finds other documents (fail), or that may do so (warn): with the number of the filter, its line, the JSON pointer of\n" +
			"the clause and the reason. The file is JSON: one filter, an array of filters, or one filter per line; instead of a\n" +
			"filter, a request of GraphQL with the members query and variables, of which searchAfter, histogram and top_hits are\n" +
			"judged too. With --catalogue the types of the fields decide: with index.url in the configuration the search engine\n" +
			"is asked for them, and the server only with --server; otherwise the server is. Without --catalogue nothing is asked.\n\n" +
			"Exit code: 0 when nothing failed, even with warnings, else 1.",
		Example: "  tutti filters check saved.json\n" +
			"  tutti filters check saved.json --catalogue donors --config tutti.yaml\n" +
			"  tutti filters check saved.ndjson --output json | jq '.findings[] | select(.status == \"fail\")'",
		Args: command.Arguments(1, "pass the file that holds the filters"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(r.Output); err != nil {
				return err
			}
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return core.WrapError(core.CodeInvalid, "reading the filters: "+err.Error(), err)
			}
			var fields []core.CatalogueField
			if catalogue != "" {
				if fields, err = catalogueFields(cmd, &r, file, catalogue); err != nil {
					return err
				}
			}
			return command.ReportFindings(cmd, savedfilter.Check(raw, fields), r.Output)
		},
	}
	r.AddFlags(cmd)
	command.ConfigFlag(cmd, &file)
	cmd.Flags().StringVar(&catalogue, "catalogue", "", "the `id` of the catalogue that the filters are for")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("catalogue", command.CompleteIDs(&r, 1, catalogueIDs))
	return cmd
}

// catalogueFields returns the fields of a catalogue, of the search engine of the configuration, or of a server.
func catalogueFields(cmd *cobra.Command, r *command.Remote, file, id string) ([]core.CatalogueField, error) {
	if !cmd.Flags().Changed("server") {
		cfg, err := config.Load(file, os.Environ())
		if err != nil {
			return nil, err
		}
		if cfg.Index.URL != "" {
			return compare.CatalogueFields(cmd.Context(), cfg, id)
		}
	}
	c, err := r.Client(cmd)
	if err != nil {
		return nil, err
	}
	detail, err := c.Catalogue(cmd.Context(), id)
	if err == nil && detail.Problem != nil {
		err = core.NewError(core.CodeUnavailable, "the catalogue "+detail.ID+" has failed: "+detail.Problem.Message)
	}
	return detail.Fields, err
}
