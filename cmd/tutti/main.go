// Command tutti keeps a search index in sync with scientific metadata repositories, and serves that index.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/admin"
	"tutti/cmd/tutti/internal/catalogues"
	"tutti/cmd/tutti/internal/command"
	"tutti/cmd/tutti/internal/records"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0; 1 with the error on stderr; 2 for a job that ended partial.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addHelpAndCompletion(root)
	return command.Report(stderr, root.ExecuteContext(ctx))
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tutti",
		Short: "Keep a search index in sync with scientific metadata repositories",
		Long: "tutti keeps a search index in sync with scientific metadata repositories, and serves that index.\n" +
			"Try it: tutti demo",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("tutti {{.Version}}\n")
	root.SetFlagErrorFunc(command.FlagError)
	root.AddCommand(serveCommand(), demoCommand(), configCommand(), checkCommand(), admin.AlertsCommand(), records.IndexCommand(), records.MappingCommand(), records.WhyCommand(), records.JobsCommand(),
		records.DeadLettersCommand(), catalogues.Command(), catalogues.SchemasCommand(), catalogues.FiltersCommand(), catalogues.UpgradeCommand(), admin.KeysCommand(), admin.BackupCommand(), admin.RestoreCommand(), admin.MoveCommand(), admin.MigrateCommand(), versionCommand())
	for _, cmd := range root.Commands() {
		setDefaults(cmd)
	}
	return root
}

// setDefaults makes a command and its sub-commands take no arguments unless they say otherwise, and one that only has sub-commands print
// its help.
func setDefaults(cmd *cobra.Command) {
	if cmd.Args == nil && cmd.ValidArgsFunction == nil {
		cmd.Args, cmd.ValidArgsFunction = command.NoArguments, cobra.NoFileCompletions
	}
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, sub := range cmd.Commands() {
		setDefaults(sub)
	}
}

func versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  tutti version\n  tutti version --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			if output == command.OutputText {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "tutti "+buildVersion())
				return err
			}
			line, err := json.Marshal(map[string]string{"version": buildVersion()})
			if err != nil {
				return fmt.Errorf("writing the version: %w", err)
			}
			return command.PrintJSON(cmd.OutOrStdout(), line)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}
