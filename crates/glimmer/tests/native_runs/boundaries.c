/* What a C program may do wrong, and what the library may: boundaries HOST NATIVE_PORT CLOSED_PORT. */

#include <glimmer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of test builds that panics. */
glimmer_outcome glimmer_planted_panic(glimmer_client *client);

static void check(const char *what, glimmer_outcome outcome, glimmer_outcome expected)
{
    if (outcome != expected) {
        fprintf(stderr, "%s: %s: %s\n", what, glimmer_outcome_text(outcome), glimmer_message());
        exit(1);
    }
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    const char *host = arguments[1];
    const uint16_t port = (uint16_t)atoi(arguments[2]);
    glimmer_outcome outcome;

    if (glimmer_connect("no-such-host.invalid", port, NULL, &outcome))
        return 3;
    check("unknown host", outcome, GLIMMER_OUTCOME_NO_ADDRESS);
    if (glimmer_connect(host, (uint16_t)atoi(arguments[3]), NULL, &outcome))
        return 4;
    check("closed port", outcome, GLIMMER_OUTCOME_REFUSED);
    if (!strstr(glimmer_message(), arguments[3]))
        return 5;

    glimmer_client *client = glimmer_connect(host, port, NULL, NULL);
    const glimmer_bytes key = {(const uint8_t *)"key", 3};
    const glimmer_bytes missing = {NULL, 3};
    glimmer_item *item = glimmer_item_new();
    check("put", glimmer_put(client, key, key, 0, 0), GLIMMER_OUTCOME_OK);
    check("put", glimmer_put_ms(client, key, key, 0, 600500), GLIMMER_OUTCOME_OK);
    check("add", glimmer_add_ms(client, key, key, 0, 600500), GLIMMER_OUTCOME_NOT_STORED);
    check("replace", glimmer_replace_ms(client, key, key, 0, 600500), GLIMMER_OUTCOME_OK);
    check("swap", glimmer_compare_and_swap_ms(client, key, 1ull << 60, key, 0, 600500), GLIMMER_OUTCOME_NOT_STORED);
    check("touch", glimmer_touch_ms(client, key, 700500), GLIMMER_OUTCOME_OK);
    check("no value", glimmer_put_ms(client, key, missing, 0, 1), GLIMMER_OUTCOME_ARGUMENT);
    check("no client", glimmer_get(NULL, key, item), GLIMMER_OUTCOME_ARGUMENT);
    check("no item", glimmer_get(client, key, NULL), GLIMMER_OUTCOME_ARGUMENT);
    check("no key", glimmer_get(client, missing, item), GLIMMER_OUTCOME_ARGUMENT);
    check("no value", glimmer_put(client, key, missing, 0, 0), GLIMMER_OUTCOME_ARGUMENT);
    check("nothing to read", glimmer_get_many(client, NULL, 2, &item, &outcome), GLIMMER_OUTCOME_ARGUMENT);

    /* An item is read into again and again, by the value that it has as a key, too. */
    for (int turn = 0; turn < 10; turn++)
        check("get", glimmer_get(client, key, item), GLIMMER_OUTCOME_OK);
    check("get", glimmer_get(client, glimmer_item_value(item), item), GLIMMER_OUTCOME_OK);
    check("delete", glimmer_delete(client, key), GLIMMER_OUTCOME_OK);
    check("get", glimmer_get(client, key, item), GLIMMER_OUTCOME_NOT_FOUND);
    if (glimmer_item_value(item).length != 0)
        return 6;
    check("increment", glimmer_increment(client, key, 1, NULL), GLIMMER_OUTCOME_NOT_FOUND);

    /* A bug in the library does not end the process. The client cannot be used any more, others can. */
    glimmer_client *other = glimmer_connect(host, port, NULL, NULL);
    check("panic", glimmer_planted_panic(client), GLIMMER_OUTCOME_INTERNAL);
    check("after it", glimmer_get(client, key, item), GLIMMER_OUTCOME_INTERNAL);
    check("beside it", glimmer_get(other, key, item), GLIMMER_OUTCOME_NOT_FOUND);

    glimmer_item_free(item);
    glimmer_item_free(NULL);
    glimmer_free(client);
    glimmer_free(other);
    glimmer_free(NULL);
    puts("nothing happened");
    return 0;
}
