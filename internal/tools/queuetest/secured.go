package queuetest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nkeys"

	"tutti/internal/tools/testkit"
)

// Ways in which the user tutti authenticates with secured servers.
const (
	// WayUsers is a password in the account TUTTI, and an nkey in the account NKEY.
	WayUsers = "users"
	// WayCertificates is a client certificate, which all clients need.
	WayCertificates = "certificates"
	// WayOperator is a file of credentials that an operator's account signed.
	WayOperator = "operator"
)

// certificateUser is the name in the client's certificate.
const certificateUser = "tutti.client.test"

// Secured makes the files of servers with TLS, and of their clients, for one way. The user tutti has Rights. Files that no way
// makes do not exist.
type Secured struct {
	// Dir is the folder of the files: ca.pem signed everything but foreign.pem, which is another authority; server.pem and server.key of
	// the servers, route.pem and route.key for their connections to each other, and expired.pem and expired.key, which have expired; client.pem
	// and client.key; password, nkey and tutti.creds; expired.creds and foreign.creds, which servers refuse; auth.conf has users and accounts.
	Dir string
	Way string
	// Port is the first of four: node0.conf, node1.conf and node2.conf are a cluster, single.conf has the last port and is none. Servers of
	// the cluster talk at the ports from Port+10 on, and /healthz of all is at those from Port+20 on.
	Port int
}

// Write makes the files.
func (s Secured) Write() error {
	if err := s.certificates(); err != nil {
		return err
	}
	auth, err := s.auth()
	if err != nil {
		return err
	}
	if err := s.write("auth.conf", auth); err != nil {
		return err
	}
	verify := ""
	if s.Way == WayCertificates {
		verify = ", verify_and_map: true"
	}
	const tls = `tls: {cert_file: %[1]q, key_file: %[2]q, ca_file: %[3]q%[4]s}`
	authority := filepath.Join(s.Dir, "ca.pem")
	pair := func(name, verify string) string {
		return fmt.Sprintf(tls, filepath.Join(s.Dir, name+".pem"), filepath.Join(s.Dir, name+".key"), authority, verify)
	}
	var routes []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", s.Port+10+i))
	}
	for i, name := range []string{"node0", "node1", "node2", "single"} {
		text := fmt.Sprintf("server_name: %s\nlisten: '127.0.0.1:%d'\nhttp: '127.0.0.1:%d'\n"+
			"jetstream: {store_dir: %q, max_file_store: 1GB, sync_interval: always}\n", name, s.Port+i, s.Port+20+i, filepath.Join(s.Dir, name)) +
			pair("server", verify) + "\ninclude auth.conf\n"
		if name != "single" {
			text += fmt.Sprintf("cluster: {name: secured, listen: '127.0.0.1:%d', routes: [%s], ", s.Port+10+i, strings.Join(routes, ", ")) +
				pair("route", ", verify: true") + "}\n"
		}
		if err := s.write(name+".conf", text); err != nil {
			return err
		}
	}
	return nil
}

func (s Secured) write(name, content string) error {
	return os.WriteFile(filepath.Join(s.Dir, name), []byte(content), 0o600)
}

// certificates makes the authorities, and the certificates of servers and clients.
func (s Secured) certificates() error {
	own, err := testkit.NewAuthority()
	if err != nil {
		return err
	}
	foreign, err := testkit.NewAuthority()
	if err != nil {
		return err
	}
	files := map[string]string{"ca.pem": string(own.PEM), "foreign.pem": string(foreign.PEM)}
	for name, host := range map[string]string{"server": "127.0.0.1", "expired": "127.0.0.1", "route": "127.0.0.1", "client": certificateUser} {
		until := time.Now().Add(24 * time.Hour)
		if name == "expired" {
			until = time.Now().Add(-time.Minute)
		}
		cert, key, err := own.Certificate(time.Now().Add(-time.Hour), until, host)
		if err != nil {
			return err
		}
		files[name+".pem"], files[name+".key"] = string(cert), string(key)
	}
	for name, content := range files {
		if err := s.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// auth returns the configuration of users and accounts, and makes the files of the users.
func (s Secured) auth() (string, error) {
	const accounts = "accounts: {SYS: {users: [{user: system, password: %q}]}, %s}\nsystem_account: SYS\n"
	const account = "%s: {jetstream: enabled, users: [{%s, %s}]}"
	switch s.Way {
	case WayCertificates:
		return fmt.Sprintf(accounts, rand.Text(), fmt.Sprintf(account, "TUTTI", "user: "+certificateUser, Rights)), nil
	case WayOperator:
		return s.operator()
	}
	password := rand.Text()
	nkey, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	seed, err := nkey.Seed()
	if err != nil {
		return "", err
	}
	public, err := nkey.PublicKey()
	if err != nil {
		return "", err
	}
	if err := s.write("password", password); err != nil {
		return "", err
	}
	return fmt.Sprintf(accounts, rand.Text(), fmt.Sprintf(account, "TUTTI", "user: tutti, password: "+password, Rights)+", "+
		fmt.Sprintf(account, "NKEY", "nkey: "+public, Rights)), s.write("nkey", string(seed))
}

// operator is auth for an operator, whose accounts are in the memory of the servers.
func (s Secured) operator() (string, error) {
	operator, err := newIdentity(nkeys.CreateOperator)
	if err != nil {
		return "", err
	}
	claims := jwt.NewOperatorClaims(operator.public)
	claims.Name = "operator"
	preload := ""
	account := func(name string, limits jwt.JetStreamLimits) (identity, error) {
		a, err := newIdentity(nkeys.CreateAccount)
		if err != nil {
			return a, err
		}
		c := jwt.NewAccountClaims(a.public)
		c.Name, c.Limits.JetStreamLimits = name, limits
		token, err := c.Encode(operator.KeyPair)
		preload += fmt.Sprintf("%s: %s\n", a.public, token)
		return a, err
	}
	system, err := account("SYS", jwt.JetStreamLimits{})
	if err != nil {
		return "", err
	}
	claims.SystemAccount = system.public
	tutti, err := account("TUTTI", jwt.JetStreamLimits{DiskStorage: 1 << 30, MemoryStorage: 1 << 28, Streams: jwt.NoLimit, Consumer: jwt.NoLimit})
	if err != nil {
		return "", err
	}
	unknown, err := newIdentity(nkeys.CreateAccount)
	if err != nil {
		return "", err
	}
	for name, user := range map[string]struct {
		account identity
		expires time.Time
	}{
		"tutti":   {tutti, time.Now().Add(24 * time.Hour)},
		"expired": {tutti, time.Now().Add(-time.Hour)},
		"foreign": {unknown, time.Now().Add(time.Hour)},
	} {
		text, err := credentials(user.account, user.expires)
		if err != nil {
			return "", err
		}
		if err := s.write(name+".creds", text); err != nil {
			return "", err
		}
	}
	token, err := claims.Encode(operator.KeyPair)
	return fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s}\n", token, system.public, preload), err
}

// identity is a key pair with its public half as a text.
type identity struct {
	nkeys.KeyPair
	public string
}

func newIdentity(create func() (nkeys.KeyPair, error)) (identity, error) {
	pair, err := create()
	if err != nil {
		return identity{}, err
	}
	public, err := pair.PublicKey()
	return identity{pair, public}, err
}

// credentials returns a .creds file of a user of an account with Rights.
func credentials(account identity, expires time.Time) (string, error) {
	user, err := newIdentity(nkeys.CreateUser)
	if err != nil {
		return "", err
	}
	parsed, err := conf.Parse(Rights)
	if err != nil {
		return "", err
	}
	rights, _ := parsed["permissions"].(map[string]any)
	subjects := func(verb string) (all []string) {
		list, _ := rights[verb].([]any)
		for _, subject := range list {
			all = append(all, fmt.Sprint(subject))
		}
		return all
	}
	c := jwt.NewUserClaims(user.public)
	c.Name, c.Expires = "tutti", expires.Unix()
	c.Pub.Allow.Add(subjects("publish")...)
	c.Sub.Allow.Add(subjects("subscribe")...)
	c.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: 2 * time.Minute}
	token, err := c.Encode(account.KeyPair)
	if err != nil {
		return "", err
	}
	seed, err := user.Seed()
	if err != nil {
		return "", err
	}
	text, err := jwt.FormatUserConfig(token, seed)
	return string(text), err
}
