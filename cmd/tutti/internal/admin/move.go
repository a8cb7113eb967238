package admin

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/storage"
	"tutti/internal/config"
)

// MoveCommand returns tutti move.
func MoveCommand() *cobra.Command {
	var file, to, output string
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move store, queue and index from the data folder to other servers",
		Long: "Move what runs inside a tutti, which must be stopped, to the servers that another configuration names in store.url\n" +
			"(PostgreSQL), queue.url (NATS) and index.url (Elasticsearch or OpenSearch): the rows of the store are copied and compared,\n" +
			"the messages of the queue are copied, and at the next start, with the new configuration, every repository is run once, which fills\n" +
			"the index. PostgreSQL and NATS must be empty. The data folder remains as it is, but no tutti starts on the parts that were\n" +
			"moved. After an error the command can be repeated.",
		Example: "  tutti move --config tutti.yaml --to servers.yaml\n" +
			"  tutti serve --config servers.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			if to == "" {
				return command.Usage(cmd, "pass the new configuration with --to")
			}
			before, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			after, err := config.Load(to, os.Environ())
			if err != nil {
				return err
			}
			moved, err := storage.Move(cmd.Context(), before, after, slog.New(slog.DiscardHandler), func(line string) { cmd.PrintErrln(line) })
			if err != nil {
				return err
			}
			if output == command.OutputJSON {
				line, err := json.Marshal(moved)
				if err != nil {
					return fmt.Errorf("writing the result: %w", err)
				}
				return command.PrintJSON(cmd.OutOrStdout(), line)
			}
			return display.KeyValues(cmd.OutOrStdout(), "moved", strings.Join(moved.Parts, ", "), "rows", display.Count(moved.Rows),
				"messages", display.Count(int64(moved.Messages)), "next", "tutti serve --config "+to+", which runs every repository once")
		},
	}
	command.ConfigFlag(cmd, &file)
	cmd.Flags().StringVar(&to, "to", "", "the new configuration `file` (YAML)")
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}
