<?php
// Installs the site, with a theme that shows the posts and little else.
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = '127.0.0.1:8080';
require __DIR__ . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('Shop', 'admin', 'admin@example.org', true, '', 'of this test');
switch_theme('plain');
