package main

import "github.com/spf13/cobra"

func migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate an existing deployment",
		Long:  "Migrate an existing deployment of Maestro, Arranger and Song.",
		Example: "  tutti migrate config --maestro maestro.env --arranger configs --song application.yml > tutti.yaml\n" +
			"  tutti migrate song --from postgres://song@song-db:5432/song --config tutti.yaml",
	}
	cmd.AddCommand(migrateConfigCommand(), migrateSongCommand())
	return cmd
}
