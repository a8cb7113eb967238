package command

import (
	"cmp"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

// Remote holds the flags of every command that calls a server: its address, the credentials and the output format.
type Remote struct {
	Server, Token, CAFile, Output string
}

// AddFlags adds the flags of r to cmd and its sub-commands.
func (r *Remote) AddFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.Server, "server", cmp.Or(os.Getenv("TUTTI_SERVER"), client.DefaultServer),
		"the `URL` of the server, base path included; also TUTTI_SERVER")
	// TUTTI_TOKEN is not the default: the help would show it.
	flags.StringVar(&r.Token, "token", "", "the `token` to authenticate with, an API key or a JWT; prefer TUTTI_TOKEN, because other users can see command lines")
	flags.StringVar(&r.CAFile, "ca-file", os.Getenv("TUTTI_CA_FILE"),
		"a PEM `file` of certificate authorities to trust in addition to the system's; also TUTTI_CA_FILE")
	flags.StringVarP(&r.Output, "output", "o", OutputText, "`text`, or json for the server's response")
	Complete(cmd, "output", Outputs()...)
}

// Client returns a client for the flags.
func (r *Remote) Client(cmd *cobra.Command) (*client.Client, error) {
	if err := CheckOutput(r.Output); err != nil {
		return nil, err
	}
	return client.New(client.Config{
		Server: r.Server, Token: cmp.Or(r.Token, os.Getenv("TUTTI_TOKEN")), UserAgent: "tutti/" + cmd.Root().Version,
		CAFile: r.CAFile,
	})
}

// EmbeddedIndexError returns err, or for a server that is not reached one that says why only a server can read an embedded index.
func EmbeddedIndexError(err error) error {
	if core.CodeOf(err) != core.CodeUnavailable {
		return err
	}
	return &core.Error{
		Code: core.CodeUnavailable, Message: "only a running tutti can read the embedded index, and " + core.MessageOf(err), Hint: core.HintOf(err),
	}
}

// JSON reports whether responses are printed as JSON.
func (r *Remote) JSON() bool { return r.Output == OutputJSON }

// Print prints a response of the server as JSON, or calls text to print it. It returns err if there is one.
func (r *Remote) Print(cmd *cobra.Command, raw json.RawMessage, err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case r.JSON():
		return PrintJSON(cmd.OutOrStdout(), raw)
	default:
		return text()
	}
}
