<?php
// Counts the requests of a session. `?ms=N` holds the session for a while.
if (!@session_start()) {
    http_response_code(503);
    exit('no session');
}
$_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
usleep(1000 * (int) ($_GET['ms'] ?? 1));
echo $_SESSION['count'];
