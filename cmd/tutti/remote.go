package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"tutti/internal/client"
)

// remote is what every command that asks a server has: where it is, who asks, and how answers are written.
type remote struct {
	server, token, caFile, output string
}

// addFlags returns cmd and the commands below it the flags of a remote.
func (r *remote) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.server, "server", cmp.Or(os.Getenv("TUTTI_SERVER"), client.DefaultServer),
		"the `URL` of the server, base path included; also TUTTI_SERVER")
	// The default is not the environment's token: the help would show it.
	flags.StringVar(&r.token, "token", "", "the `token` that proves who asks, an API key or a JWT; better given as TUTTI_TOKEN, since others can see a command line")
	flags.StringVar(&r.caFile, "ca-file", os.Getenv("TUTTI_CA_FILE"),
		"a PEM `file` of authorities to trust beside the system's, for a server with https; also TUTTI_CA_FILE")
	flags.StringVarP(&r.output, "output", "o", outputText, "`text` or json, which is what the server answers")
	complete(cmd, "output", outputs()...)
}

// client makes the client that the flags ask for.
func (r *remote) client() (*client.Client, error) {
	if err := checkOutput(r.output); err != nil {
		return nil, err
	}
	return client.New(client.Config{
		Server: r.server, Token: cmp.Or(r.token, os.Getenv("TUTTI_TOKEN")), UserAgent: "tutti/" + buildVersion(),
		CAFile: r.caFile,
	})
}

// json reports whether answers are written as the server returns them.
func (r *remote) json() bool { return r.output == outputJSON }
