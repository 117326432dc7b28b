package stack

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs what one management cluster needs: the API server's and the
// webhooks' serving certificates, and one client certificate per user.
type authority struct {
	key  crypto.Signer
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	return &authority{key: key, cert: cert, pem: encodeCert(cert.Raw)}, nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

func (a *authority) sign(subject pkix.Name, usage x509.ExtKeyUsage) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:      subject,
		SerialNumber: serial,
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return encodeCert(der), keyPEM, err
}

// writeServing puts a serving certificate for 127.0.0.1 into dir, under the
// names that webhook servers look for.
func (a *authority) writeServing(dir string) (certFile, keyFile string, err error) {
	cert, key, err := a.sign(pkix.Name{CommonName: "127.0.0.1"}, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	return certFile, keyFile, writeFiles(map[string][]byte{certFile: cert, keyFile: key})
}

// user is who somebody is to an API server.
type user struct {
	name   string
	groups []string
}

func serviceAccount(namespace, name string) user {
	return user{
		name:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name),
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// writeKubeconfig writes the file with which u reaches server.
func (a *authority) writeKubeconfig(path, cluster, server string, u user) error {
	cert, key, err := a.sign(pkix.Name{CommonName: u.name, Organization: u.groups}, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.pem}
	config.AuthInfos[u.name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: u.name}
	config.CurrentContext = cluster
	return clientcmd.WriteToFile(*config, path)
}

func writeFiles(files map[string][]byte) error {
	for path, data := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
