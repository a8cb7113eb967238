// Package catalogues has the commands on catalogues and on the schemas of analysis types.
//
// Its tests are in cmd/tutti.
package catalogues

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// Command returns tutti catalogues.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalogues",
		Short: "List, show, check and plan catalogues",
		Long: "A catalogue is a searchable index with its configuration. Without a configuration, each index that tutti writes to\n" +
			"is a catalogue.",
		Example: "  tutti catalogues list\n" +
			"  tutti catalogues show donors\n" +
			"  tutti catalogues check ./configs\n" +
			"  tutti catalogues plan ./configs --config tutti.yaml",
	}
	cmd.AddCommand(cataloguesListCommand(), cataloguesShowCommand(), cataloguesCheckCommand(), cataloguesPlanCommand())
	return cmd
}

func cataloguesListCommand() *cobra.Command {
	var r command.Remote
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the catalogues of a server",
		Long: "List the catalogues of a running server with their document types and states. The exit code is 0 even when a\n" +
			"catalogue has failed.",
		Example: "  tutti catalogues list\n" +
			"  tutti catalogues list --output json | jq '.catalogs | map_values(.error // empty)'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			list, err := c.Catalogues(cmd.Context())
			return r.Print(cmd, list.Raw, err, func() error { return printCatalogues(cmd, list) })
		},
	}
	r.AddFlags(cmd)
	return cmd
}

func printCatalogues(cmd *cobra.Command, list client.CatalogueList) error {
	out := cmd.OutOrStdout()
	if len(list.Catalogues) == 0 {
		_, err := fmt.Fprintln(out, "no catalogues")
		return err
	}
	table := display.NewTable("ID", "DOCUMENT TYPE", "STATUS", "GRAPHQL", "PROBLEM")
	for _, c := range list.Catalogues {
		table.Row(c.ID, c.DocumentType, string(c.Status), c.Paths.GraphQL, problemText(c.Problem))
	}
	return table.Write(out)
}

// problemText returns why a catalogue failed, "" for one that did not.
func problemText(p *core.CatalogueProblem) string {
	if p == nil {
		return ""
	}
	return string(p.Code) + ": " + p.Message
}

func cataloguesShowCommand() *cobra.Command {
	var r command.Remote
	cmd := &cobra.Command{
		Use:   "show <id>",
		Short: "Show a catalogue with its fields",
		Long: "Show a catalogue of a running server, by its id or by its document type if no other catalogue has it: the fields,\n" +
			"sorted by name, and the operators that a filter may use on fields of each type. For a failed catalogue the error\n" +
			"code and message are shown, and the exit code is 1.",
		Example: "  tutti catalogues show donors\n" +
			"  tutti catalogues show donors --output json | jq '.fields | keys'",
		Args:              command.Arguments(1, "pass the id of one catalogue"),
		ValidArgsFunction: command.CompleteIDs(&r, 1, catalogueIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			detail, err := c.Catalogue(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if r.JSON() {
				err = command.PrintJSON(cmd.OutOrStdout(), detail.Raw)
			} else {
				err = printCatalogue(cmd, detail)
			}
			if err == nil && detail.Problem != nil {
				err = &command.ExitError{Code: command.ExitFailed, Err: errors.New("the catalogue " + detail.ID + " failed")}
			}
			return err
		},
	}
	r.AddFlags(cmd)
	return cmd
}

func printCatalogue(cmd *cobra.Command, c client.CatalogueDetail) error {
	out := cmd.OutOrStdout()
	facts := []string{"id", c.ID, "document type", c.DocumentType, "description", c.Description}
	if c.Problem != nil {
		return display.KeyValues(out, append(facts, "status", string(client.CatalogueFailed), "problem", problemText(c.Problem))...)
	}
	access := ""
	if c.Restricted {
		access = "restricted: some documents are hidden from this caller"
	}
	facts = append(facts, "status", string(client.CatalogueAvailable), "access", access, "fields", strconv.Itoa(len(c.Fields)))
	if err := display.KeyValues(out, facts...); err != nil {
		return err
	}
	operators := display.NewTable("TYPE", "OPERATORS")
	for _, kind := range slices.Sorted(maps.Keys(c.Operators)) {
		operators.Row(kind, strings.Join(c.Operators[kind], ", "))
	}
	fields := display.NewTable("FIELD", "TYPE", "DISPLAY NAME", "UNIT")
	for _, f := range c.Fields {
		fields.Row(f.Name, f.Type, f.DisplayName, f.Unit)
	}
	for _, table := range []*display.Table{operators, fields} {
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := table.Write(out); err != nil {
			return err
		}
	}
	return nil
}

// catalogueIDs returns completions for the ids of all catalogues.
func catalogueIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Catalogues(ctx)
	if err != nil {
		return nil, err
	}
	var ids []cobra.Completion
	for _, catalogue := range list.Catalogues {
		if core.ValidID("id", catalogue.ID) == nil {
			ids = append(ids, cobra.CompletionWithDesc(catalogue.ID, printable.Line(catalogue.DocumentType+", "+string(catalogue.Status))))
		}
	}
	return ids, nil
}
