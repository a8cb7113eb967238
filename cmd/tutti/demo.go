package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"tutti/internal/app/demo"
)

func demoCommand() *cobra.Command {
	var cfg demo.Config
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the main job work, without any configuration or other server",
		Long: "Start everything embedded, a metadata repository that speaks Song's protocol and a tabular one that speaks\n" +
			"Lyric's; index both, change some records, tell of them by trigger and by webhook, let the index reject one,\n" +
			"submit and publish analyses to the built-in repository, describe what is indexed by catalogues, and stay up to be\n" +
			"looked at until ctrl-c.",
		Example: "  tutti demo\n  tutti demo --listen 127.0.0.1:9000 --data-dir /tmp/demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs := io.Discard
			if verbose {
				logs = cmd.ErrOrStderr()
			}
			cfg.Out, cfg.Logger, cfg.Version = cmd.OutOrStdout(), slog.New(slog.NewTextHandler(logs, nil)), buildVersion()
			return demo.Run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.DataDir, "data-dir", "tutti-data/demo", "the `folder` for queue, index and store")
	cmd.Flags().StringVar(&cfg.Listen, "listen", demo.DefaultListen, "the `address` to listen on; another port is taken when it is in use")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show the log")
	return cmd
}
