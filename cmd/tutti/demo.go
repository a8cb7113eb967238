package main

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/internal/tools/demo"
)

func demoCommand() *cobra.Command {
	var cfg demo.Config
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demonstration that needs no configuration and no other server",
		Long: "Start tutti with everything embedded, a metadata repository that speaks Song's protocol and a tabular one that\n" +
			"speaks Lyric's. Index both, change records and notify tutti by trigger and by webhook, let the index reject two,\n" +
			"submit and publish analyses to the built-in repository, serve catalogues of the indices, and keep running until\n" +
			"ctrl-c.",
		Example: "  tutti demo\n  tutti demo --listen 127.0.0.1:9000 --data-dir /tmp/demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs := io.Discard
			if verbose {
				logs = cmd.ErrOrStderr()
			}
			cfg.Out, cfg.Logger, cfg.Version = cmd.OutOrStdout(), slog.New(slog.NewTextHandler(logs, nil)), buildVersion()
			cfg.Command = ownCommand()
			return demo.Run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.DataDir, "data-dir", "tutti-data/demo", "the `folder` for queue, index and store")
	cmd.Flags().StringVar(&cfg.Listen, "listen", demo.DefaultListen, "the `address` to listen on; another port is used if it is taken")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show the log")
	return cmd
}

// ownCommand returns what starts tutti in another terminal, in the same folder: its source where that is, else this program, as it was started.
func ownCommand() string {
	if _, err := os.Stat("cmd/tutti/main.go"); err == nil && version == "dev" {
		return "go run ./cmd/tutti"
	}
	if strings.Contains(os.Args[0], " ") {
		return `"` + os.Args[0] + `"`
	}
	return os.Args[0]
}
