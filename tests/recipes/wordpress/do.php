<?php
// Does one thing in a process of its own: `do.php THING [VALUE]`.
$_SERVER['HTTP_HOST'] = '127.0.0.1:8080';
require __DIR__ . '/wp-load.php';
$value = $argv[2] ?? null;
switch ($argv[1]) {
    case 'post':
        wp_insert_post(['post_title' => $value, 'post_content' => 'text', 'post_status' => 'publish']);
        break;
    case 'title':
        if ($value !== null) {
            update_option('blogname', $value);
        }
        echo get_option('blogname');
        break;
    case 'transient':
        // Its value, and in how many rows of the database it is.
        if ($value !== null) {
            set_transient('recipe', $value, 60);
        }
        $rows = $wpdb->get_var("SELECT COUNT(*) FROM $wpdb->options WHERE option_name LIKE '%transient_recipe%'");
        echo get_transient('recipe'), ' ', $rows;
        break;
    case 'flush':
        wp_cache_flush();
        break;
    case 'count':
        wp_cache_add('counter', 0, 'recipe', 0);
        for ($times = 0; $times < (int) $value; $times++) {
            wp_cache_incr('counter', 1, 'recipe');
        }
        break;
    case 'counted':
        echo wp_cache_get('counter', 'recipe');
        break;
}
