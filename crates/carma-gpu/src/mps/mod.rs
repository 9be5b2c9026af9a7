//! MPS: processes of one user that share a GPU through a server.
