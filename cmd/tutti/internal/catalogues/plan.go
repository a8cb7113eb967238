package catalogues

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/plan"
	"tutti/internal/client"
	"tutti/internal/client/display"
	"tutti/internal/config"
	"tutti/internal/core"
)

func cataloguesPlanCommand() *cobra.Command {
	var output, server, file string
	cmd := &cobra.Command{
		Use:   "plan <dir>",
		Short: "Show how a folder of catalogues differs from the indices and from what a server serves",
		Long: "Read a folder like catalogues.dir, and show for each catalogue the fields of extended, facets and table that the\n" +
			"mapping of its index lacks or has with another type. With index.url in the configuration the search engine is\n" +
			"asked; the fields of an embedded index are those that the server has. With --server, also show what taking up the\n" +
			"folder changes on that server, which does it by itself once its catalogues.dir has the files. Nothing is changed.\n\n" +
			"Exit code: 0 when there is no difference; 2 when there is; 1 when a catalogue has an error, and on every error.",
		Example: "  tutti catalogues plan ./configs --config tutti.yaml\n" +
			"  tutti catalogues plan ./configs --server http://127.0.0.1:8080\n" +
			"  tutti catalogues plan ./configs --config tutti.yaml --output json | jq '.catalogues[] | select(.fields != [])'",
		Args:              command.Arguments(1, oneCatalogueFolder),
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			p, err := planCatalogues(cmd, args[0], file, server)
			if err == nil && output == command.OutputJSON {
				var text json.RawMessage
				if text, err = json.Marshal(p); err == nil {
					err = command.PrintJSON(cmd.OutOrStdout(), text)
				}
			} else if err == nil {
				err = printCataloguesPlan(cmd.OutOrStdout(), p)
			}
			switch {
			case err != nil:
				return err
			case p.Failed() > 0:
				return core.NewError(core.CodeInvalid, fmt.Sprintf("%d of %d catalogues have an error", p.Failed(), len(p.Catalogues)))
			case p.Difference:
				return &command.ExitError{Code: command.ExitPartial}
			default:
				return nil
			}
		},
	}
	command.ConfigFlag(cmd, &file)
	cmd.Flags().StringVar(&server, "server", "", "the `URL` of a server to compare with, base path included")
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}

// planCatalogues asks the search engine of the configuration, if it has one, and the server.
func planCatalogues(cmd *cobra.Command, dir, file, server string) (plan.CataloguesPlan, error) {
	cfg, err := config.Load(file, os.Environ())
	if err != nil {
		return plan.CataloguesPlan{}, err
	}
	if cfg.Index.URL == "" && server == "" {
		return plan.CataloguesPlan{}, &core.Error{
			Code: core.CodeInvalid, Message: "the embedded index can be read only through its server", Hint: "pass --server",
		}
	}
	var mappings plan.Mappings
	if cfg.Index.URL != "" {
		engine, err := plan.Engine(cfg)
		if err != nil {
			return plan.CataloguesPlan{}, err
		}
		defer func() { _ = engine.Close() }() // nothing was written
		mappings = engine
	}
	var served plan.Served
	if server != "" {
		c, err := (&command.Remote{Server: server, Output: command.OutputText}).Client(cmd)
		if err != nil {
			return plan.CataloguesPlan{}, err
		}
		served = servedCatalogues{c}
	}
	return plan.Catalogues(cmd.Context(), dir, mappings, served)
}

// servedCatalogues are the catalogues of a server.
type servedCatalogues struct{ client *client.Client }

// IDs returns the ids of all catalogues.
func (s servedCatalogues) IDs(ctx context.Context) ([]string, error) {
	list, err := s.client.Catalogues(ctx)
	var ids []string
	for _, c := range list.Catalogues {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// Fields returns one catalogue with its fields.
func (s servedCatalogues) Fields(ctx context.Context, id string) (core.Catalogue, error) {
	c, err := s.client.Catalogue(ctx, id)
	return core.Catalogue{ID: c.ID, Description: c.Description, DocumentType: c.DocumentType, Problem: c.Problem, Fields: c.Fields}, err
}

func printCataloguesPlan(out io.Writer, p plan.CataloguesPlan) error {
	table := display.NewTable("CATALOGUE", "INDEX", "FIELD", "IN", "CONFIGURED", "INDEX HAS", "CHANGE")
	for _, c := range p.Catalogues {
		switch {
		case c.Error != "":
			table.Row(c.ID, c.Index, "", "", "", "", c.Error)
		case len(c.Fields)+len(c.Reload) == 0 && c.Hint != "":
			table.Row(c.ID, c.Index, "", "", "", "", c.Hint)
		case len(c.Fields)+len(c.Reload) == 0:
			table.Row(c.ID, c.Index, "", "", "", "", "none")
		}
		for _, f := range c.Fields {
			change := "the index lacks the field"
			if f.Live != "" {
				change = "the index has another type"
			}
			table.Row(c.ID, c.Index, f.Field, f.Where, f.Configured, f.Live, change)
		}
		for _, text := range c.Reload {
			table.Row(c.ID, c.Index, "", "", "", "", text)
		}
	}
	return table.Write(out)
}
