package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/config"
)

// BackupCommand returns tutti backup.
func BackupCommand() *cobra.Command {
	var r command.Remote
	var file string
	const want = "pass the folder to write"
	cmd := &cobra.Command{
		Use:   "backup <folder>",
		Short: "Back up store, queue and index of a server into a folder",
		Long: "Back up the parts that run inside a tutti, while it runs: the store, the queue and the index. What was acknowledged before\n" +
			"the command starts is in the backup. Parts on other servers are not included, and are named. The folder must be empty or\n" +
			"missing; its last file is manifest.json, without which a backup is not complete. It contains everything that tutti\n" +
			"stores, and hashes of the API keys: keep it as safe as the data folder. The configuration file is not in it. With\n" +
			"--config the data folder is read directly, while no tutti runs on it.",
		Example: "  tutti backup /backups/2026-05-04\n" +
			"  tutti backup --config tutti.yaml /backups/2026-05-04\n" +
			"  tutti restore --config tutti.yaml /backups/2026-05-04",
		Args: command.Arguments(1, want),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var m backup.Manifest
			unpack := func(archive io.Reader) (err error) {
				m, err = backup.Unpack(archive, args[0])
				return err
			}
			var err error
			if cmd.Flags().Changed("config") {
				err = backupStopped(cmd, file, unpack)
			} else {
				err = backupRunning(cmd, &r, unpack)
			}
			if err != nil {
				return err
			}
			return printBackup(cmd, r.Output, "backed up", m)
		},
	}
	r.AddFlags(cmd)
	cmd.Flags().StringVar(&file, "config", "", "read the data folder of this configuration `file` directly, while no tutti runs on it")
	return cmd
}

// backupRunning calls unpack with a backup of a server.
func backupRunning(cmd *cobra.Command, r *command.Remote, unpack func(io.Reader) error) error {
	c, err := r.Client(cmd)
	if err != nil {
		return err
	}
	return c.Backup(cmd.Context(), unpack)
}

// backupStopped calls unpack with a backup of the data folder of a configuration file.
func backupStopped(cmd *cobra.Command, file string, unpack func(io.Reader) error) error {
	for _, flag := range []string{"server", "token"} {
		if cmd.Flags().Changed(flag) {
			return command.Usage(cmd, "--config reads the data folder directly and cannot be combined with --"+flag)
		}
	}
	cfg, err := config.Load(file, os.Environ())
	if err != nil {
		return err
	}
	archive, in := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := storage.WriteBackup(cmd.Context(), cfg, slog.New(slog.DiscardHandler), cmd.Root().Version, in)
		written <- err
		_ = in.CloseWithError(err) // never fails
	}()
	err = unpack(archive)
	_ = archive.CloseWithError(err) // never fails
	if fault := <-written; fault != nil && !errors.Is(fault, err) {
		return fault
	}
	return err
}

// RestoreCommand returns tutti restore.
func RestoreCommand() *cobra.Command {
	var file, output string
	const want = "pass the folder of the backup"
	cmd := &cobra.Command{
		Use:   "restore <folder>",
		Short: "Restore a backup into an empty data folder",
		Long: "Restore what tutti backup wrote into the data folder of a configuration, which must be empty. The sizes and hashes of all\n" +
			"files are checked first. At its next start tutti runs every repository once, so that the index is as the repositories\n" +
			"are then. Parts that the backup does not include are named; restore them with the tools of their servers before.",
		Example: "  tutti restore --config tutti.yaml /backups/2026-05-04\n" +
			"  tutti serve --config tutti.yaml",
		Args: command.Arguments(1, want),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			m, err := storage.Restore(cmd.Context(), cfg, slog.New(slog.DiscardHandler), args[0])
			if err != nil {
				return err
			}
			return printBackup(cmd, output, "restored", m)
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML); also TUTTI_CONFIG")
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text`, or json for the backup's manifest")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}

// printBackup prints what was backed up or restored, and how to back up the rest.
func printBackup(cmd *cobra.Command, output, done string, m backup.Manifest) error {
	if output == command.OutputJSON {
		line, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("writing the manifest: %w", err)
		}
		return command.PrintJSON(cmd.OutOrStdout(), line)
	}
	var facts []string
	for _, part := range m.Parts {
		facts = append(facts, part, display.Count(m.Bytes(part))+" bytes")
	}
	for _, part := range m.NotIncluded {
		facts = append(facts, part, "not included: it is on another server; use "+ownBackup(part))
	}
	facts = append(facts, done, fmt.Sprintf("%s files, %s bytes, as of %s", display.Count(int64(len(m.Files))), display.Count(m.Bytes("")),
		display.Time(m.StartedAt)))
	return display.KeyValues(cmd.OutOrStdout(), facts...)
}

// ownBackup names the tools that back up a part on another server.
func ownBackup(part string) string {
	switch part {
	case backup.PartStore:
		return "pg_dump and pg_restore"
	case backup.PartQueue:
		return "nats stream backup and nats stream restore, for " + strings.Join([]string{"REQUESTS", "KV_tutti_jobs", "DEAD_LETTERS", "SEEN_SIGNATURES"}, ", ")
	default:
		return "snapshots of Elasticsearch or OpenSearch; or tutti index, which writes it again"
	}
}
