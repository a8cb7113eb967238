package catalogues

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/jsontext"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// maxTypes is the largest limit that the server accepts for a list of analysis types.
const maxTypes = 1000

// SchemasCommand returns tutti schemas.
func SchemasCommand() *cobra.Command {
	var r command.Remote
	cmd := &cobra.Command{
		Use:   "schemas",
		Short: "List, show and register analysis types",
		Long: "An analysis type is a JSON Schema with options. The built-in repository validates analyses against it. Registering a\n" +
			"name again creates its next version; versions never change.",
		Example: "  tutti schemas list\n" +
			"  tutti schemas get sequencingRead --version 2\n" +
			"  tutti schemas register sequencingRead.json",
	}
	r.AddFlags(cmd)
	cmd.AddCommand(schemasListCommand(&r), schemasGetCommand(&r), schemasRegisterCommand(&r))
	return cmd
}

func schemasListCommand(r *command.Remote) *cobra.Command {
	filter := client.AnalysisTypeFilter{HideSchema: true}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List analysis types, the newest first",
		Long:    "List every version of every analysis type, the newest first and without the schemas.\n\n" + command.LocalTimes,
		Example: "  tutti schemas list --name sequencingRead\n  tutti schemas list --limit 100 --output json | jq -r '.resultSet[].name'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			page, err := c.AnalysisTypes(cmd.Context(), filter)
			return r.Print(cmd, page.Raw, err, func() error { return printTypes(cmd, page) })
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&filter.Names, "name", nil, "only versions of the type with this `name`; may be given several times")
	flags.Var(&command.Number{Target: &filter.Limit, Most: maxTypes}, "limit", "list at most this `number`, from 1 to 1000 (default 20)")
	flags.Var(&command.Number{Target: &filter.Offset, Most: math.MaxInt}, "offset", "skip the newest `number` of versions")
	command.Complete(cmd, "limit")
	command.Complete(cmd, "offset")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("name", command.CompleteIDs(r, math.MaxInt, typeNames))
	return cmd
}

func printTypes(cmd *cobra.Command, page client.AnalysisTypePage) error {
	out := cmd.OutOrStdout()
	if len(page.ResultSet) == 0 {
		_, err := fmt.Fprintln(out, "no analysis types")
		return err
	}
	table := display.NewTable("NAME", ">VERSION", "CREATED", "FILE TYPES", "EXTERNAL VALIDATIONS")
	for _, t := range page.ResultSet {
		table.Row(t.Name, strconv.Itoa(t.Version), display.Time(t.CreatedAt), strings.Join(t.Options.FileTypes, ", "), validatedPaths(t))
	}
	if err := table.Write(out); err != nil {
		return err
	}
	if next := page.Offset + len(page.ResultSet); next < page.Count {
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "more results: --offset %d\n", next)
		return err
	}
	return nil
}

// validatedPaths returns the JSON paths that external services validate.
func validatedPaths(t client.AnalysisType) string {
	var paths []string
	for _, v := range t.Options.ExternalValidations {
		paths = append(paths, v.JSONPath)
	}
	return strings.Join(paths, ", ")
}

func schemasGetCommand(r *command.Remote) *cobra.Command {
	var version int
	var unrendered bool
	cmd := &cobra.Command{
		Use:   "get <name>",
		Short: "Show an analysis type with its schema",
		Long: "Show the latest version of an analysis type, or the one of --version, with its options and the schema that analyses are\n" +
			"validated against. That is the registered schema merged with the base schema; --unrendered omits the base schema.\n" +
			"Without --version, --output json contains all versions.\n\n" + command.LocalTimes,
		Example: "  tutti schemas get sequencingRead\n" +
			"  tutti schemas get sequencingRead --version 2 --unrendered --output json | jq .schema",
		Args:              command.Arguments(1, "pass the name of one analysis type"),
		ValidArgsFunction: command.CompleteIDs(r, 1, typeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			t, err := c.AnalysisType(cmd.Context(), args[0], version, unrendered)
			return r.Print(cmd, t.Raw, err, func() error { return printType(cmd, t) })
		},
	}
	cmd.Flags().Var(&command.Number{Target: &version, Most: math.MaxInt}, "version", "the version, a `number`; the latest by default")
	cmd.Flags().BoolVar(&unrendered, "unrendered", false, "show the schema as it was registered")
	command.Complete(cmd, "version")
	return cmd
}

func printType(cmd *cobra.Command, t client.AnalysisType) error {
	out := cmd.OutOrStdout()
	facts := []string{
		"name", t.Name, "version", strconv.Itoa(t.Version), "created", display.Time(t.CreatedAt),
		"file types", strings.Join(t.Options.FileTypes, ", "),
	}
	for _, v := range t.Options.ExternalValidations {
		facts = append(facts, "validated", v.JSONPath+" by "+v.URL)
	}
	var versions []string
	for _, other := range t.Versions {
		versions = append(versions, strconv.Itoa(other.Version))
	}
	if err := display.KeyValues(out, append(facts, "versions", strings.Join(versions, ", "))...); err != nil {
		return err
	}
	if len(t.Schema) == 0 {
		return nil
	}
	schema, ok := jsontext.Indented(t.Schema)
	if !ok {
		schema = string(t.Schema) // it nests too deeply
	}
	_, err := fmt.Fprintf(out, "\n%s\n", printable.Lines(schema))
	return err
}

// typeNames returns completions for the names of the newest analysis types.
func typeNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	page, err := c.AnalysisTypes(ctx, client.AnalysisTypeFilter{HideSchema: true, Limit: command.CompletionLimit})
	if err != nil {
		return nil, err
	}
	var names []cobra.Completion
	seen := map[string]bool{}
	for _, t := range page.ResultSet {
		if !seen[t.Name] && core.ValidID("name", t.Name) == nil {
			seen[t.Name] = true
			names = append(names, cobra.Completion(t.Name))
		}
	}
	return names, nil
}
