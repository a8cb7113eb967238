package main

import (
	"os"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/check"
	"tutti/internal/config"
)

func checkCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and everything that it names",
		Long: "Validate the configuration, connect to the queue, the index, the store, every repository, Kafka broker and key set\n" +
			"that it names, compare every catalogue with its index, and print one line for each, with a hint where something is\n" +
			"wrong. Nothing is changed, and a server that runs on the same data folder is not affected. The exit code is 0 when\n" +
			"nothing failed, else 1.",
		Example: "  tutti check --config tutti.yaml\n  tutti check --config tutti.yaml --output json | jq '.findings[] | select(.status != \"ok\")'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			var found check.Report
			if cfg, err := config.Load(file, os.Environ()); err != nil {
				found = check.InvalidConfiguration(err)
			} else {
				found = check.Run(cmd.Context(), cfg, check.Options{Version: buildVersion()})
			}
			return command.ReportFindings(cmd, found, output)
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML); also TUTTI_CONFIG")
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}
