package main

import (
	"cmp"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"tutti/internal/client"
)

// remote holds the flags of every command that calls a server: its address, the credentials and the output format.
type remote struct {
	server, token, caFile, output string
}

// addFlags adds the flags of r to cmd and its sub-commands.
func (r *remote) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.server, "server", cmp.Or(os.Getenv("TUTTI_SERVER"), client.DefaultServer),
		"the `URL` of the server, base path included; also TUTTI_SERVER")
	// TUTTI_TOKEN is not the default: the help would show it.
	flags.StringVar(&r.token, "token", "", "the `token` to authenticate with, an API key or a JWT; prefer TUTTI_TOKEN, because other users can see command lines")
	flags.StringVar(&r.caFile, "ca-file", os.Getenv("TUTTI_CA_FILE"),
		"a PEM `file` of certificate authorities to trust in addition to the system's; also TUTTI_CA_FILE")
	flags.StringVarP(&r.output, "output", "o", outputText, "`text`, or json for the server's response")
	complete(cmd, "output", outputs()...)
}

// client returns a client for the flags.
func (r *remote) client() (*client.Client, error) {
	if err := checkOutput(r.output); err != nil {
		return nil, err
	}
	return client.New(client.Config{
		Server: r.server, Token: cmp.Or(r.token, os.Getenv("TUTTI_TOKEN")), UserAgent: "tutti/" + buildVersion(),
		CAFile: r.caFile,
	})
}

// json reports whether responses are printed as JSON.
func (r *remote) json() bool { return r.output == outputJSON }

// print prints a response of the server as JSON, or calls text to print it. It returns err if there is one.
func (r *remote) print(cmd *cobra.Command, raw json.RawMessage, err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case r.json():
		return printJSON(cmd.OutOrStdout(), raw)
	default:
		return text()
	}
}
