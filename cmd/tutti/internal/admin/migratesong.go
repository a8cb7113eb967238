package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // for --time-zone, also where the system has no time zones

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/storage"
	"tutti/internal/base/printable"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	migratesong "tutti/internal/metadata/fromsong"
	"tutti/internal/store/connection"
)

// progressInterval is the shortest interval between two lines of progress.
const progressInterval = 2 * time.Second

func migrateSongCommand() *cobra.Command {
	var from, zone, file string
	files := tlsconfig.Files{Flags: true}
	cmd := &cobra.Command{
		Use:   "song",
		Short: "Copy the studies, analysis types and analyses of a Song",
		Long: "Copy the studies, analysis types with all their versions, and analyses of a Song into the built-in repository of a\n" +
			"configuration, with their ids, states and history, from its PostgreSQL (5.2 or 5.3) or through its routes. The server\n" +
			"must not run on the same data folder. Nothing is validated again, and no event is written: index the repository\n" +
			"afterwards. The command can be repeated: it adds what is new, replaces what has changed in Song and not in tutti, and\n" +
			"continues after an interruption. It prints counts, and each thing that it did not copy with the reason; the exit code\n" +
			"is 2 if there is one. A password may be in PGPASSWORD, a token for Song's routes in SONG_TOKEN.",
		Example: "  tutti migrate song --from postgres://song@song-db:5432/song --config tutti.yaml\n" +
			"  tutti migrate song --from https://song.example.org --config tutti.yaml\n" +
			"  tutti index local --wait",
		RunE: func(cmd *cobra.Command, _ []string) error {
			location, err := time.LoadLocation(zone)
			if err != nil {
				return command.Usage(cmd, fmt.Sprintf("%q is not a time zone: pass a name such as Europe/Berlin, or UTC", zone))
			}
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			source, err := openSong(cmd, from, files, location)
			if err != nil {
				return err
			}
			err = migrateSong(cmd, cfg, source)
			return errors.Join(err, source.Close(context.WithoutCancel(cmd.Context())))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "Song's database, postgres://…, or its `address`, http(s)://…")
	flags.StringVar(&zone, "time-zone", "UTC", "the time `zone` of Song's process, in which it stores times")
	flags.StringVar(&file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML) of the tutti to copy to; also TUTTI_CONFIG")
	flags.StringVar(&files.CAFile, "ca-file", "", "PEM `file` of certificate authorities to trust for --from instead of the system's")
	flags.StringVar(&files.ClientCertFile, "client-cert-file", "", "PEM `file` of a certificate to show to --from")
	flags.StringVar(&files.ClientKeyFile, "client-key-file", "", "PEM `file` of the private key of --client-cert-file")
	flags.StringVar(&files.ServerName, "server-name", "", "the `name` that the certificate of --from must be for")
	return cmd
}

// openSong opens the source that --from names.
func openSong(cmd *cobra.Command, from string, files tlsconfig.Files, zone *time.Location) (migratesong.Source, error) {
	scheme, _, _ := strings.Cut(from, "://")
	switch scheme {
	case "postgres", "postgresql":
		return migratesong.OpenDatabase(cmd.Context(), connection.Settings{URL: from, URLKey: "--from", TLS: files}, zone)
	case "http", "https":
		return migratesong.OpenServer(from, os.Getenv("SONG_TOKEN"), files, zone)
	}
	return nil, command.Usage(cmd, "pass --from with Song's database, postgres://…, or its address, https://…")
}

// migrateSong copies everything from a source and prints the report.
func migrateSong(cmd *cobra.Command, cfg config.Config, source migratesong.Source) error {
	ctx := cmd.Context()
	target, err := storage.OpenMigrationTarget(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	last := time.Now()
	report, err := migratesong.Run(ctx, source, target, target.Types(), func(r *migratesong.Report) {
		if time.Since(last) >= progressInterval {
			last = time.Now()
			total := 0
			for _, n := range r.Analyses {
				total += n
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%d analyses\n", total)
		}
	})
	err = errors.Join(err, target.Close(context.WithoutCancel(ctx)))
	for _, line := range report.Lines() {
		if _, fault := fmt.Fprintln(cmd.OutOrStdout(), printable.Line(line)); fault != nil {
			return errors.Join(err, fault)
		}
	}
	for _, skipped := range report.Skipped {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), printable.Line("not copied: "+skipped))
	}
	if report.NotNamed > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "not copied: %d more\n", report.NotNamed)
	}
	if err == nil && !report.Complete() {
		err = &command.ExitError{Code: command.ExitPartial}
	}
	return err
}
