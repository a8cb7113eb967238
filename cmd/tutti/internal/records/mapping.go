package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/check"
	"tutti/internal/app/compare"
	"tutti/internal/base/printable"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/mappingplan"
)

const oneRepository = "pass the code of one repository"

// MappingCommand returns tutti mapping.
func MappingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mapping",
		Short: "Compare the mapping of an index with the configuration, show it, and adopt an existing index",
		Long: "Compare the mapping of a repository's index with its mapping file, show what tutti would create, and make an existing\n" +
			"index one that tutti can write to.",
		Example: "  tutti mapping plan song.collab --config tutti.yaml\n" +
			"  tutti mapping show song.collab --config tutti.yaml\n" +
			"  tutti mapping adopt song.collab --config tutti.yaml",
	}
	cmd.AddCommand(mappingPlanCommand(), mappingShowCommand(), mappingAdoptCommand())
	return cmd
}

func mappingPlanCommand() *cobra.Command {
	var r command.Remote
	var file string
	cmd := &cobra.Command{
		Use:   "plan <repository>",
		Short: "Show how the mapping of a repository's index differs from its mapping file",
		Long: "Show what stands under the repository's indexName: nothing, an alias and its index, an index that something else\n" +
			"made. Then show the fields and settings in which the index differs from the repository's mapping file, or without\n" +
			"one from the mapping that tutti starts with, and for each whether it can be added now, needs a rebuild, or is only\n" +
			"in the index, as fields are that documents have added. What the engine refuses is said with the path of the field,\n" +
			"and so is what is not used of the file. The last lines are the steps to take, in order. Nothing is changed.\n\n" +
			"With index.url in the configuration the search engine is asked, and tutti need not run. The embedded index can be\n" +
			"read only by the tutti that has it open: --server is its address. With --server, the server's own configuration\n" +
			"counts.\n\n" +
			"Exit code: 0 when there is nothing to do; 2 when there is; 1 on every error.",
		Example: "  tutti mapping plan song.collab --config tutti.yaml\n" +
			"  tutti mapping plan song.collab --config tutti.yaml --output json | jq '.fields[] | select(.change == \"needs a rebuild\")'\n" +
			"  tutti mapping plan local --server http://127.0.0.1:8080",
		Args:              command.Arguments(1, oneRepository),
		ValidArgsFunction: command.CompleteIDs(&r, 1, repositoryCodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := planMapping(cmd, &r, file, args[0])
			if err != nil {
				return err
			}
			if err := r.Print(cmd, p.Raw, nil, func() error { return printMappingPlan(cmd.OutOrStdout(), p.Plan) }); err != nil || !p.Difference {
				return err
			}
			return &command.ExitError{Code: command.ExitPartial}
		},
	}
	r.AddFlags(cmd)
	command.ConfigFlag(cmd, &file)
	return cmd
}

// planMapping asks the search engine of a configuration, or a server.
func planMapping(cmd *cobra.Command, r *command.Remote, file, code string) (client.MappingPlan, error) {
	var p client.MappingPlan
	c, err := r.Client(cmd)
	if err != nil {
		return p, err
	}
	if cmd.Flags().Changed("server") {
		return c.MappingPlan(cmd.Context(), code)
	}
	cfg, err := config.Load(file, os.Environ())
	if err != nil {
		return p, err
	}
	rc, err := compare.Repository(cfg, code)
	if err != nil {
		return p, err
	}
	if cfg.Index.URL == "" {
		p, err = c.MappingPlan(cmd.Context(), code)
		return p, command.EmbeddedIndexError(err)
	}
	engine, err := compare.Engine(cfg)
	if err != nil {
		return p, err
	}
	defer func() { _ = engine.Close() }() // nothing was written
	types, unread := check.Declared(cmd.Context(), cfg, rc, cmd.Root().Version)
	if p.Plan, err = compare.Mapping(cmd.Context(), cfg, rc, types, engine); err != nil {
		return p, err
	}
	if unread != nil {
		p.Warnings = append(p.Warnings, "what the repository declares about the types of fields could not be read: "+core.MessageOf(unread))
	}
	p.Raw, err = json.Marshal(p.Plan)
	return p, err
}

func printMappingPlan(out io.Writer, p mappingplan.Plan) error {
	documents := ""
	if p.Documents > 0 {
		documents = strconv.FormatInt(p.Documents, 10)
	}
	wanted := "mapping file"
	if p.MappingFile == "" {
		wanted = "initial mapping"
	}
	if err := display.KeyValues(out,
		"repository", p.Repository, "index", p.IndexName+" is "+p.Summary, "documents", documents,
		"other aliases", strings.Join(p.OtherAliases, ", "), "mapping file", p.MappingFile); err != nil {
		return err
	}
	fields := display.NewTable("FIELD", strings.ToUpper(wanted), "INDEX", "CHANGE")
	for _, f := range p.Fields {
		fields.Row(f.Field, f.Wanted, f.Live, f.Change)
	}
	settings := display.NewTable("SETTING", strings.ToUpper(wanted), "INDEX", "CHANGE")
	for _, s := range p.Settings {
		settings.Row(s.Setting, s.Wanted, s.Live, mappingplan.Rebuild)
	}
	limits := display.NewTable("LIMIT", "CONFIGURATION", "INDEX", "CHANGE")
	for _, l := range p.Limits {
		limits.Row(l.Setting, l.Wanted, l.Live, "by the next rebuild")
	}
	for _, part := range []struct {
		rows  int
		table *display.Table
	}{{len(p.Fields), fields}, {len(p.Settings), settings}, {len(p.Limits), limits}} {
		if part.rows == 0 {
			continue
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := part.table.Write(out); err != nil {
			return err
		}
	}
	if err := printMappingNotes(out, p); err != nil {
		return err
	}
	text := "\nThere is nothing to do.\n"
	if p.Difference {
		text = "\nNext:\n  " + printable.Lines(strings.Join(p.Next, "\n  ")) + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

// printMappingNotes prints what is said about the mapping file itself.
func printMappingNotes(out io.Writer, p mappingplan.Plan) error {
	var notes []string
	if p.Refused != "" {
		notes = append(notes, "refused: "+p.Refused)
	}
	if p.Untried {
		notes = append(notes, "not tried: the search engine does not let this user try the mapping; only the first creation of an index will tell")
	}
	for _, f := range p.Retyped {
		notes = append(notes, "a rebuild changes the type of "+f.Field+" from "+f.Live+" to "+f.Wanted)
	}
	if len(p.Unused) > 0 {
		notes = append(notes, "not used: "+strings.Join(p.Unused, ", "))
	}
	for _, w := range p.Warnings {
		notes = append(notes, "warning: "+w)
	}
	if len(notes) == 0 {
		return nil
	}
	_, err := io.WriteString(out, "\n"+printable.Lines(strings.Join(notes, "\n"))+"\n")
	return err
}

func mappingShowCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "show <repository>",
		Short: "Print the settings and the mapping with which a repository's index would be created",
		Long: "Print, as JSON, the body with which the index of a repository would be created: tutti's own fields, and what the\n" +
			"mapping file and newFields add and override. For the embedded index it has only the mapping. tutti need not run;\n" +
			"the search engine is asked only which one it is. Nothing is changed.",
		Example: "  tutti mapping show song.collab --config tutti.yaml\n" +
			"  tutti mapping show song.collab --config tutti.yaml | jq .mappings.properties",
		Args:              command.Arguments(1, oneRepository),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			rc, err := compare.Repository(cfg, args[0])
			if err != nil {
				return err
			}
			body, unreached, err := compare.Definition(cmd.Context(), cfg, rc)
			if err != nil {
				return err
			}
			if unreached != nil {
				cmd.PrintErrln("tutti: as for Elasticsearch: " + core.MessageOf(unreached))
			}
			var text bytes.Buffer
			if err := json.Indent(&text, body, "", "  "); err != nil {
				return fmt.Errorf("writing the mapping: %w", err)
			}
			return command.PrintJSON(cmd.OutOrStdout(), text.Bytes())
		},
	}
	command.ConfigFlag(cmd, &file)
	return cmd
}

func mappingAdoptCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "adopt <repository>",
		Short: "Turn an existing index into an alias of the same documents, which tutti can write to",
		Long: "Turn the Elasticsearch or OpenSearch index that has a repository's indexName into an alias of the same documents,\n" +
			"as tutti writes only to an alias. The index is cloned, under the name <indexName>-<time>, and in one step replaced\n" +
			"by the alias; its other aliases move too. No document is lost or copied by hand, and nothing that reads the name\n" +
			"has to change; only a search in flight at that moment may fail once. Meanwhile the index takes no writes: stop\n" +
			"what else writes to it, such as Maestro, first. If a step fails, the index is as before; if the command is\n" +
			"killed, repeat it.\n\n" +
			"An alias of several indices, as after a rollover, becomes one of the oldest of them. The others keep their documents;\n" +
			"delete them when nothing else needs them, and take the index out of the policy that has rolled it over.\n\n" +
			"A running tutti that is paused because of the index continues by itself. tutti mapping plan shows whether the\n" +
			"mapping needs a rebuild, which keeps the adopted index for --rollback.",
		Example: "  tutti mapping adopt song.collab --config tutti.yaml\n" +
			"  tutti mapping adopt song.collab --config tutti.yaml --output json | jq -r .index",
		Args:              command.Arguments(1, oneRepository),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			adopted, err := compare.Adopt(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			if output == command.OutputJSON {
				text, err := json.Marshal(adopted)
				if err != nil {
					return fmt.Errorf("writing the result: %w", err)
				}
				return command.PrintJSON(cmd.OutOrStdout(), text)
			}
			facts := []string{"adopted", adopted.IndexName, "now an alias of", adopted.Index}
			if len(adopted.Released) > 0 {
				facts = append(facts, "no longer of", strings.Join(adopted.Released, ", "))
			}
			return display.KeyValues(cmd.OutOrStdout(), append(facts, "next", "tutti mapping plan "+args[0])...)
		},
	}
	command.ConfigFlag(cmd, &file)
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}
