package catalogues

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/compare"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/mappingplan"
)

func cataloguesPlanCommand() *cobra.Command {
	var r command.Remote
	var file string
	cmd := &cobra.Command{
		Use:   "plan <dir>",
		Short: "Show how a folder of catalogues differs from the indices and from what a server serves",
		Long: "Read a folder like catalogues.dir, and show for each catalogue the fields of extended, facets and table that the\n" +
			"mapping of its index lacks or has with another type. With index.url in the configuration the search engine is\n" +
			"asked, and the server only with --server; otherwise the server is, which knows the indices of its repositories and the\n" +
			"fields of its catalogues. Of a server, also show what taking up the folder changes on it, which it does by itself once\n" +
			"its catalogues.dir has the files. Nothing is changed.\n\n" +
			"Exit code: 0 when there is no difference; 2 when there is; 1 when a catalogue has an error, and on every error.",
		Example: "  tutti catalogues plan ./configs --config tutti.yaml\n" +
			"  tutti catalogues plan ./configs --server http://127.0.0.1:8080\n" +
			"  tutti catalogues plan ./configs --config tutti.yaml --output json | jq '.catalogues[] | select(.fields != [])'",
		Args:              command.Arguments(1, oneCatalogueFolder),
		ValidArgsFunction: completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := planCatalogues(cmd, &r, args[0], file)
			if err != nil {
				return err
			}
			text, err := json.Marshal(p)
			err = r.Print(cmd, text, err, func() error { return printCataloguesPlan(cmd.OutOrStdout(), p) })
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
	r.AddFlags(cmd)
	command.ConfigFlag(cmd, &file)
	return cmd
}

// planCatalogues asks the search engine of the configuration, if it has one, and the server.
func planCatalogues(cmd *cobra.Command, r *command.Remote, dir, file string) (compare.CataloguesPlan, error) {
	c, err := r.Client(cmd)
	if err != nil {
		return compare.CataloguesPlan{}, err
	}
	cfg, err := config.Load(file, os.Environ())
	if err != nil {
		return compare.CataloguesPlan{}, err
	}
	if cfg.Index.URL == "" {
		p, err := compare.Catalogues(cmd.Context(), dir, nil, servedCatalogues{c})
		return p, command.EmbeddedIndexError(err)
	}
	engine, err := compare.Engine(cfg)
	if err != nil {
		return compare.CataloguesPlan{}, err
	}
	defer func() { _ = engine.Close() }() // nothing was written
	if !cmd.Flags().Changed("server") {
		return compare.Catalogues(cmd.Context(), dir, engine, nil)
	}
	return compare.Catalogues(cmd.Context(), dir, engine, servedCatalogues{c})
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

// Plan returns the plan of an index that a repository of the server writes to, nil for another one.
func (s servedCatalogues) Plan(ctx context.Context, name string) (*mappingplan.Plan, error) {
	all, err := s.client.Repositories(ctx)
	at := slices.IndexFunc(all, func(r core.RepositoryStatus) bool { return r.IndexName == name })
	if err != nil || at < 0 {
		return nil, err
	}
	p, err := s.client.MappingPlan(ctx, all[at].Code)
	return &p.Plan, err
}

func printCataloguesPlan(out io.Writer, p compare.CataloguesPlan) error {
	table := display.NewTable("CATALOGUE", "INDEX", "FIELD", "IN", "CONFIGURED", "INDEX HAS", "CHANGE")
	for _, c := range p.Catalogues {
		for _, text := range []string{c.Error, c.Hint} {
			if text != "" {
				table.Row(c.ID, c.Index, "", "", "", "", text)
			}
		}
		if c.Error == "" && c.Hint == "" && len(c.Fields)+len(c.Reload) == 0 {
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
