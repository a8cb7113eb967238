package config

import (
	"tutti/internal/base/setting"
	"tutti/internal/base/tlsconfig"
)

// ClientTLS names the files of outgoing TLS connections. The zero value trusts the system's authorities and shows no certificate.
type ClientTLS struct {
	// CAFile is a PEM file of certificate authorities to trust instead of the system's.
	CAFile string
	// ClientCertFile is a PEM file of a certificate to show to the server, ClientKeyFile one of its private key.
	ClientCertFile, ClientKeyFile string
	// ServerName is the name that the server's certificate must be for; empty for the host of its address.
	ServerName string
}

func (t *ClientTLS) keys() []setting.Key {
	return append(t.fileKeys(), setting.Text("serverName", &t.ServerName, "", "Name that the server's certificate must be for; empty for the host of its address."))
}

// fileKeys returns the keys for connections to servers of several names.
func (t *ClientTLS) fileKeys() []setting.Key {
	return []setting.Key{
		setting.Text("caFile", &t.CAFile, "", "PEM file of certificate authorities to trust instead of the system's; like the other files of TLS, it is read again when it changes."),
		setting.Text("clientCertFile", &t.ClientCertFile, "", "PEM file of a certificate to show to the server, followed by the intermediate certificates."),
		setting.Text("clientKeyFile", &t.ClientKeyFile, "", "PEM file of the private key of clientCertFile, without a password."),
	}
}

func (t ClientTLS) validate(at string, f *setting.ErrorList) {
	switch {
	case t.ClientCertFile != "" && t.ClientKeyFile == "":
		f.Add(at+".clientKeyFile", "", "set the file of the certificate's private key", "is missing")
	case t.ClientCertFile == "" && t.ClientKeyFile != "":
		f.Add(at+".clientCertFile", "", "set the file of the certificate", "is missing")
	}
}

// validateFor is validate for the connections to the address in a key below at.
func (t ClientTLS) validateFor(at, key, address string, f *setting.ErrorList) {
	t.validate(at, f)
	if address == "" && t != (ClientTLS{}) {
		f.Add(at+"."+key, "", "set it, or remove the files and the name for TLS", "is missing, but files or a name for TLS are set")
	}
}

// Files returns the files with the key of their connection, which errors name.
func (t ClientTLS) Files(key string) tlsconfig.Files {
	return tlsconfig.Files{Key: key, CAFile: t.CAFile, ClientCertFile: t.ClientCertFile, ClientKeyFile: t.ClientKeyFile, ServerName: t.ServerName}
}
