package admin

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tutti/internal/base/printable"
	migrateconfig "tutti/internal/config/migrate"
)

// MigrateCommand returns tutti migrate.
func MigrateCommand() *cobra.Command {
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

func migrateConfigCommand() *cobra.Command {
	var in migrateconfig.Input
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print a configuration file made from those of Maestro, Arranger and Song",
		Long: "Print a configuration file made from those of Maestro, Arranger and Song. Each value has a comment with the key that\n" +
			"it is from; keys without a counterpart are comments too. A product without a flag is read from the variables of the\n" +
			"environment. The formats are .env files, application.yml and application.properties of Spring, folders that hold\n" +
			"them, and Arranger's folder of JSON files, which catalogues.dir then names. Secrets are not copied. What the user\n" +
			"must decide is written to stderr.",
		Example: "  tutti migrate config --maestro maestro.env --arranger configs --song application.yml > tutti.yaml\n" +
			"  tutti check --config tutti.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Environ = os.Environ()
			out, err := migrateconfig.Migrate(in)
			if err != nil {
				return err
			}
			for _, warning := range out.Warnings {
				if _, err := fmt.Fprintln(cmd.ErrOrStderr(), printable.Lines("warning: "+warning)); err != nil {
					return err
				}
			}
			_, err = cmd.OutOrStdout().Write(out.File)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Maestro, "maestro", "", "a `file` of Maestro's configuration or a folder with it")
	flags.StringVar(&in.Arranger, "arranger", "", "the `folder` of Arranger's catalogues, or a .env file")
	flags.StringVar(&in.Song, "song", "", "a `file` of Song's configuration or a folder with it")
	return cmd
}
