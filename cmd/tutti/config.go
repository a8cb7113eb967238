package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/config"
	"tutti/internal/core"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write, show and describe the configuration",
	}
	cmd.AddCommand(configInitCommand(), configShowCommand(), configSchemaCommand())
	return cmd
}

func configInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a configuration file with every key",
		Long: "Write a configuration file with every key at its default, each with its meaning, type and variable. Without a file it is\n" +
			"printed. A file that exists is not overwritten.",
		Example: "  tutti config init tutti.yaml\n  tutti config init | less",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := cmd.OutOrStdout().Write(config.Sample())
				return err
			}
			// Secrets may be written into the file.
			file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return &core.Error{
					Code: core.CodeInvalid, Message: args[0] + " exists and is not overwritten", Hint: "name another file, or remove this one",
				}
			}
			if err != nil {
				return fmt.Errorf("creating the file: %w", err)
			}
			_, err = file.Write(config.Sample())
			return errors.Join(err, file.Close())
		},
	}
}

func configShowCommand() *cobra.Command {
	var file, output string
	var origin bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in effect",
		Long: "Print the configuration that tutti serve would use: the file, the environment and the defaults together, with secrets\n" +
			"masked. With --origin each value that is not a default has a comment with its line of the file or its variable.",
		Example: "  tutti config show --config tutti.yaml --origin\n  tutti config show --config tutti.yaml --output json | jq .index",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "yaml" && output != command.OutputJSON {
				return fmt.Errorf("--output is yaml or json, not %q", output)
			}
			if origin && output == command.OutputJSON {
				return errors.New("--origin writes comments, which JSON does not have; leave out --output json")
			}
			text, err := config.Effective(file, os.Environ(), origin)
			if err != nil {
				return err
			}
			if output == command.OutputJSON {
				var values any
				if err := yaml.Unmarshal(text, &values); err != nil {
					return fmt.Errorf("reading the configuration: %w", err)
				}
				if text, err = json.MarshalIndent(values, "", "  "); err != nil {
					return fmt.Errorf("writing the configuration: %w", err)
				}
				text = append(text, '\n')
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML); also TUTTI_CONFIG")
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "`yaml` or json")
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each value is from")
	command.Complete(cmd, "output", "yaml", command.OutputJSON)
	return cmd
}

func configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the configuration file",
		Long:    "Print the JSON Schema (draft 2020-12) of the configuration file, with which editors complete and check it.",
		Example: "  tutti config schema > tutti.schema.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}
